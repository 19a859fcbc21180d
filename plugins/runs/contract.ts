import type { WireError } from '../../core/errors.ts'
import type { AgentRef, QuestionText } from '../../core/plugin.ts'
import type { RunLimits, Usage } from '../../core/protocol.ts'

export type RunStatus = 'queued' | 'started' | 'paused' | 'completed' | 'failed' | 'stopped'

export interface RunRecord {
	run_id: string
	/** The agent's name. */
	agent: string
	agent_uid: string
	/** Runs of one conversation go one after another. */
	conversation: string
	status: RunStatus
	/** What started it: `api`, later a channel, webhook, heartbeat or sub-agent. */
	trigger: string
	prompt: string
	created_at: string
	started_at: string | null
	ended_at: string | null
	answer: string | null
	usage: Usage
	error: WireError | null
	/** Open while the run is paused. */
	question: (QuestionText & { question_id: string }) | null
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
	/** Within 24 h the same key means the same run; with another prompt it throws `idempotency_mismatch`. */
	idempotency_key?: string
}

export interface Runs {
	/** Durable when it settles. Throws `queue_full` where too many runs of the conversation wait. */
	start(agent: AgentRef, request: StartRequest): Promise<RunRecord>
	/** Throws `not_found`. */
	get(run_id: string): Promise<RunRecord>
	/** Newest first, those behind `before` where that is given. Fewer than `limit` where they are large: 8 Mi characters together. */
	list(agent: AgentRef, options: { limit: number; before?: string; status?: RunStatus }): Promise<RunRecord[]>
	/** Throws `conflict` where the run has ended already. True when it settles: nothing of the run goes on. */
	cancel(run_id: string): Promise<RunRecord>
	/** Cancels every run of the agent that has not ended. */
	stopAgent(agent: AgentRef): Promise<void>
	/** The same, and forgets what is kept of them outside the agent's own records. */
	forgetAgent(agent: AgentRef): Promise<void>
	questions(agent: AgentRef): Promise<Question[]>
	/** Throws `not_found`, or `already_answered`. */
	answer(agent: AgentRef, question_id: string, answer: string): Promise<void>
	/** False also for a run that nobody knows. */
	isActive(run_id: string): Promise<boolean>
	/** Messages of a conversation, oldest first; of the current session where none is named. */
	history(agent: AgentRef, conversation?: string): Promise<Message[]>
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
