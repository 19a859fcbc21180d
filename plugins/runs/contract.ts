import type { WireError } from '../../core/errors.ts'
import type { AgentRef, QuestionText } from '../../core/plugin.ts'
import type {
	ChatMessage,
	ModelOrder,
	NewEvent,
	RunLimits,
	ToolCallRequest,
	ToolSpec,
	Usage,
} from '../../core/protocol.ts'
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
	/** What started it: `api`, `chat`, `openai`, `mcp`, `heartbeat`, `subagent`, `compaction`; a channel's type, `webhook`. */
	trigger: string
	/** The HTTP request in whose course it was started, where there was one. */
	request_id?: string
	/** The caller's own span, as W3C Trace Context writes it. */
	traceparent?: string
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
	/** It was given something for itself; see `Given`. */
	given?: true
	/** It began behind answers and results since its prompt, mostly those of an earlier run that ended with `tool_calls`. */
	goes_on?: true
	created_at: string
	started_at: string | null
	ended_at: string | null
	answer: string | null
	/** What a completed run ended with, where that were calls of tools of `Given`: whoever started it makes them. */
	tool_calls?: ToolCallRequest[]
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

/** An open question, and the run that asks it. */
export interface Asked extends QuestionText {
	question_id: string
	run_id: string
}

export interface Message {
	role: 'user' | 'assistant'
	content: string
	timestamp: string
}

/** What a run is given for itself alone, beside what its agent and its conversation have. Kept until it ends. */
export interface Given {
	/** Earlier messages, in place of those of the conversation's earlier runs. */
	history?: ChatMessage[]
	/** What was said since the prompt: answers that called tools, and the results of all those calls. */
	since?: ChatMessage[]
	/**
	 * Tools of whoever starts the run. A call of one ends the run, which is then completed and has `tool_calls`. Names are
	 * 1-64 of `a-z A-Z 0-9 _ -`, and no other tool of the agent may have them.
	 */
	tools?: ToolSpec[]
	/** At most one call of those in an answer. */
	one_call?: boolean
	/** For every model that it calls; of two `max_tokens` the smaller one counts. */
	model?: Pick<ModelOrder, 'temperature' | 'max_tokens' | 'sampling'>
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
	given?: Given
	/**
	 * Writes that become durable together with the run, or not at all: at most 90, in the agent's scope. Asked again where
	 * somebody was faster. What it throws refuses the run.
	 */
	also?(run_id: string): Promise<Op[]>
}

/** How many runs of all agents have not ended, by what they do, and for how many answers they wait. */
export interface RunCensus {
	/** At work, or about to be. */
	active: number
	/** Behind another run of their conversation. */
	waiting: number
	/** Until a question is answered or another run has ended. */
	paused: number
	questions: number
}

export interface Runs {
	/** Durable when it settles. Throws `queue_full` where too many runs of the conversation wait. */
	start(agent: AgentRef, request: StartRequest): Promise<RunRecord>
	/** Throws `not_found`. */
	get(run_id: string): Promise<RunRecord>
	/**
	 * What a run that has ended did after its prompt, and what came before it in `since`: for a run that goes on with it.
	 * Empty where it has not ended, where that is forgotten, or would be more than 1 Mi characters. Throws `not_found`.
	 */
	progress(run_id: string): Promise<ChatMessage[]>
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
	/**
	 * The question that a run waits for, for whoever talks with it: its own, or that of a sub-agent for whose end it waits, or
	 * of one below that. Null where it waits for no answer.
	 */
	asked(run: RunRecord): Promise<Asked | null>
	/**
	 * Hears of questions that sub-agents ask while the run waits for them: of one that is open now, of each further one, and
	 * null once it is open no more; by then another way may have answered it. Of the run's own questions its events tell. Until
	 * the returned function is called. May be called before the run is there. `heard` must not throw.
	 */
	watchAsked(run_id: string, heard: (asked: Asked | null) => void): () => void
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
	/** Looks at every conversation that has a run, so it takes a while where there are many: not for each request. */
	census(): Promise<RunCensus>
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
