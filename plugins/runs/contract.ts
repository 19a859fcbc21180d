import type { WireError } from '../../core/errors.ts'
import type { AgentRef, QuestionText } from '../../core/plugin.ts'
import type { NewEvent, RunLimits, Usage } from '../../core/protocol.ts'
import type { Op } from '../../core/store/ports.ts'

export type RunStatus = 'queued' | 'started' | 'paused' | 'completed' | 'failed' | 'stopped'

export interface RunRecord {
	run_id: string
	/** The agent's name. */
	agent: string
	agent_uid: string
	/** Runs of one conversation go one after another. */
	conversation: string
	status: RunStatus
	/** What started it: `api`, `chat`, `heartbeat`, `subagent`, `compaction`; a channel's type, `webhook`. */
	trigger: string
	prompt: string
	/** In place of the agent's own, where the run has one. */
	persona?: string
	/** The run that started this one, and how deep below a run of a person's it stands: 1 for a sub-agent. */
	parent?: { run_id: string; depth: number }
	/** The run at the top, where runs were started below it: they share its limit of tokens. Its own id there. */
	family?: string
	/** Runs that this one started. They do not outlive it where it is stopped or fails. */
	children?: string[]
	/** Paused runs that wait for the end of this one. */
	waited_by?: string[]
	/** `none`: the model is offered no tools. */
	tools?: 'none'
	created_at: string
	started_at: string | null
	ended_at: string | null
	answer: string | null
	usage: Usage
	error: WireError | null
	/** Open while the run is paused, unless it waits for another run. */
	question: (QuestionText & { question_id: string }) | null
	/** The run for whose end it is paused. */
	waits_for?: string
	/** Time for which it was active before it was paused last. */
	active_ms: number
}

export interface Question extends QuestionText {
	question_id: string
	run_id: string
	/** The tool call that waits. */
	call_id: string
	asked_at: string
	answer: string | null
	answered_at: string | null
	/** Asked in the middle of a call that stays in flight. */
	live?: true
	/** Why nobody waits for the answer any more, though none was given. */
	closed?: 'expired' | 'withdrawn'
}

export interface Message {
	role: 'user' | 'assistant'
	content: string
	timestamp: string
}

export interface StartRequest {
	prompt: string
	trigger: string
	/** Default: the agent's current session. */
	conversation?: string
	/** Within 24 h the same key means the same run; with another request it throws `idempotency_mismatch`. */
	idempotency_key?: string
	/** In place of the agent's own. */
	persona?: string
	/**
	 * The run that starts this one. Throws `stopped` where it was stopped or has failed. A run with a parent is taken in
	 * however many wait in its conversation.
	 */
	parent?: { run_id: string; depth: number }
	/** `none`: the model is offered no tools. */
	tools?: 'none'
	/**
	 * Writes that become durable together with the run, or not at all: at most 90, in the agent's scope. Asked again where
	 * somebody was faster. What it throws refuses the run.
	 */
	also?(run_id: string): Promise<Op[]>
}

export interface Runs {
	/** Durable when it settles. Throws `queue_full` where too many runs of the conversation wait. */
	start(agent: AgentRef, request: StartRequest): Promise<RunRecord>
	/** Throws `not_found`. */
	get(run_id: string): Promise<RunRecord>
	/** Newest first, those behind `before` where that is given. Fewer than `limit` where they are large: 8 Mi characters together. */
	list(agent: AgentRef, options: { limit: number; before?: string; status?: RunStatus }): Promise<RunRecord[]>
	/** Throws `conflict` where the run has ended already. True when it settles: nothing of it, or of what it started, goes on. */
	cancel(run_id: string): Promise<RunRecord>
	/** Cancels every run of the agent that has not ended. */
	stopAgent(agent: AgentRef): Promise<void>
	/** The same, and forgets what is kept of them outside the agent's own records. */
	forgetAgent(agent: AgentRef): Promise<void>
	/** The run that is at work in a conversation, or paused: others wait for its end. Its record has the question that is open. */
	active(agent: AgentRef, conversation: string): Promise<RunRecord | undefined>
	/** All that are open, in all conversations. */
	questions(agent: AgentRef): Promise<Question[]>
	/**
	 * Throws `not_found`, `already_answered`, or `conflict` where nobody waits for the answer any more. `also`: writes in the
	 * agent's scope that become durable together with the answer, or not at all; at most 90.
	 */
	answer(agent: AgentRef, question_id: string, answer: string, also?: Op[]): Promise<void>
	/** Appends events to a run, in order with its own. False where it has ended: then nothing is written. */
	tell(run: Pick<RunRecord, 'run_id' | 'agent_uid'>, events: NewEvent[]): Promise<boolean>
	/** False also for a run that nobody knows. */
	isActive(run_id: string): Promise<boolean>
	/** Is a run of the agent at work, or waiting for its turn? One that is paused is not. */
	isBusy(agent: AgentRef): Promise<boolean>
	/** Messages of a conversation, oldest first; of the current session where none is named. `turns`: of the newest so many only. */
	history(agent: AgentRef, conversation?: string, turns?: number): Promise<Message[]>
	/** The current session of the API's runs. */
	session(agent: AgentRef): Promise<string>
	/** Begins a new session with an empty short-term memory. Answers with its id. */
	reset(agent: AgentRef): Promise<string>
}

export interface RunSettings {
	limits: RunLimits
	/** Runs that may wait behind the active one of a conversation. */
	max_waiting: number
	question_ttl_days: number
	retention_days: number
}

declare module '../../core/plugin.ts' {
	interface Services {
		runs: Runs
	}
}
