/**
 * Every message between the main thread and a worker thread, as types. The sandbox imports nothing from `core` but this file
 * and errors.ts.
 *
 * Each thread has one MessagePort for all of its runs. Main sends a run as `ToThread`; all further messages carry the run's
 * number: the worker sends `ToMain`, main replies with `ToWorker`. The worker sends lists of messages, since waking the other
 * thread costs more than the messages themselves. Only data crosses: no classes, no functions; errors cross as `WireError`.
 */
import type { MessagePort } from 'node:worker_threads'
import type { WireError } from './errors.ts'

/** An event without its envelope: only main adds id, time and sequence. */
export interface NewEvent {
	event_type: string
	payload: Record<string, unknown>
}

/** Types of the events that a worker emits; only main emits the others. */
export const WORKER_EVENTS = [
	'model.request',
	'model.retry',
	'model.fallback',
	'model.continued',
	'model.tools_refused',
	'context.shrunk',
] as const

export interface WorkerEvent extends NewEvent {
	event_type: (typeof WORKER_EVENTS)[number]
}

/** A part of a message besides its text, whose bytes are a blob of the agent. */
export interface Attachment {
	type: 'image' | 'file' | 'audio'
	/** `sha256:` and 64 hexadecimal digits: the digest of its bytes. */
	blob: string
	/** Detected from its bytes; if that fails, as the sender declared it. */
	media_type: string
	/** Bytes. */
	size: number
	/** As the sender named the file, at most 255 characters. */
	name?: string
	/** Of a recording: its length. */
	seconds?: number
	/** Of a recording: its text; null if the transcription failed. Absent: not attempted. */
	transcript?: string | null
}

/**
 * A message of a conversation. Every call of a tool is followed by its result before any other message. Attachments follow
 * the text of their message.
 */
export type ChatMessage =
	/** `run_id`: the turn that it begins; absent in a history that the caller sent. */
	| { role: 'user'; content: string; attachments?: Attachment[]; run_id?: string }
	| ({ role: 'assistant'; content: string; tool_calls?: ToolCallRequest[] } & ModelReasoning)
	/** `result_id`: for `conversation.read`, in messages of earlier turns. */
	| {
			role: 'tool'
			call_id: string
			name: string
			ok: boolean
			content: string
			attachments?: Attachment[]
			result_id?: string
	  }

/** A tool as it is described to a model. */
export interface ToolSpec {
	/** Canonical name, such as `memory.stm_read`. `wireName` converts it for providers that allow no dots. */
	name: string
	description: string
	/** JSON Schema (2020-12) of an object. */
	parameters: Record<string, unknown>
	/** Further names that the offline provider's `/tool` accepts, such as a skill's own name. */
	aliases?: string[]
}

export interface RunLimits {
	/** Model calls of one run. */
	steps: number
	/** Input and output tokens of all model calls of one run together. */
	tokens: number
	/** Time in which the run is active; waiting in a queue or for an answer does not count. */
	wall_time_s: number
}

export interface Usage {
	/** The whole request, including tokens from the provider's cache. */
	input_tokens: number
	/** The whole answer, including its reasoning. */
	output_tokens: number
	/** Of `input_tokens`: read from the provider's cache. Absent: none, or not reported. */
	cached_tokens?: number
	/** Of `output_tokens`: reasoning. Absent: none, or not reported. */
	reasoning_tokens?: number
	/**
	 * In the operator's currency, rounded to billionths, at the prices of the time of the call. In a sum: of the calls
	 * whose models have prices. Absent if none has.
	 */
	cost?: number
}

export interface ModelId {
	/** The provider's name in gateway.yaml. */
	provider: string
	model: string
}

/** What one call of a model used. */
export interface ModelUsage extends ModelId {
	usage: Usage
}

/** The most that a model call may use, as far as that is known before the call. */
export interface Reservation extends ModelId {
	/** The estimated request, the longest possible answer, and tokens that the run has used and that are not counted yet. */
	tokens: number
	/** Absent if the model has no price. */
	cost?: number
}

/** A request as it was sent to a model's provider. */
export interface SentRequest extends ModelId {
	/** The number of the requested model answer within the run, from 1. */
	step: number
	/** Its body, JSON; at most `SENT_CHARACTERS`, the rest is cut off. */
	body: string
	/** Characters of the whole body. */
	size: number
}

/** Characters of a body that a thread reports: more than is kept, so that no secret is cut in two. */
export const SENT_CHARACTERS = 8 * 1024 * 1024

export interface ToolCallRequest {
	/** Unique within the run; results refer to it. */
	id: string
	/** Canonical name of a known tool, otherwise the name that the model wrote. */
	name: string
	/** The arguments as the model wrote them: JSON text, which may be malformed. */
	arguments: string
}

/** Data that a provider must get back with its answer, such as reasoning items and signatures. Shown to nobody else. */
export interface ProviderState extends ModelId {
	/** Of the API. The state is replayed only to the same kind, provider and model. */
	kind: string
	/** JSON as the dialect wrote it, at most 256 KiB. */
	data: string
	/** Of `data`: a state that was changed since, such as by redaction, is not replayed. */
	digest: string
}

/** The reasoning behind a model's answer. */
export interface ModelReasoning {
	/** Its text, if the provider returns it. */
	reasoning?: string
	provider_state?: ProviderState
}

/** Why a model stopped, whatever its provider calls it. */
export type FinishReason = 'stop' | 'tool_calls' | 'length' | 'content_filter' | 'other'

/** A complete model answer. It never contains parts of an interrupted call. */
export interface ModelAnswer extends ModelReasoning, ModelId {
	/** Empty or blank if the model wrote nothing; it may still have reasoned. */
	content: string
	tool_calls: ToolCallRequest[]
	usage: Usage
	/** Tokens of its request, estimated as `tokensIn` does. */
	estimate?: number
	/** Tokens of its request as the provider counted them; `usage` may cover several calls. */
	request_tokens?: number
	/** The limit for requests to its model, in estimated tokens, if the model refused a longer request before this answer. */
	limit?: number
	/** The window of its model, in tokens, if the server stated it in that refusal. */
	window?: number
	/** In journals of version 0.1.0: the provider's own term. */
	finish_reason: FinishReason
}

/** Why a run ended before the model was done. */
export type EndReason = 'limit_steps' | 'limit_tokens' | 'limit_wall_time' | 'repeated_calls'

/** What the gateway tells the model about the course of its run; shown after the latest result. */
export interface Remark {
	/** Each reason is announced once. */
	about: EndReason
	content: string
	/** The next model call is the last one, and comes without tools. */
	last?: true
}

/** One finished step of a run: all that the loop needs to continue it. */
export type Step = Readonly<
	| { kind: 'model'; answer: ModelAnswer }
	/** `size`: characters of the complete result, where `content` is an abridged one. */
	| { kind: 'tool'; call_id: string; ok: boolean; content: string; size?: number; attachments?: Attachment[] }
	| ({ kind: 'remark' } & Remark)
>

/** All that a worker needs to execute a run, or to continue one. sandbox/order.ts adds what the agent loop alone reads. */
export interface RunOrder {
	run_id: string
	agent_id: string
	/** Earlier turns of the conversation, oldest first. */
	history: ChatMessage[]
	tools: ToolSpec[]
	journal: readonly Step[]
	limits: RunLimits
	/** How much of `limits.wall_time_s` the run has not used yet. */
	remaining_ms: number
}

export type RunOutcome =
	/**
	 * `answer` is the final model answer, not yet journalled. Its calls, if any, are for the client's tools. `spent`: the usage
	 * since the last journalled answer.
	 */
	| { status: 'completed'; answer: ModelAnswer; usage: Usage; spent: ModelUsage[]; ended_by?: EndReason }
	| { status: 'paused'; waits_for: string }
	| { status: 'stopped'; spent?: ModelUsage[] }
	| { status: 'failed'; error: WireError; usage: Usage; spent?: ModelUsage[] }

/** What a worker can request from the main thread: parameters and result of each call. */
export interface Calls {
	/** Replaces the run's last reservation by one for a model call. A result other than null says why the call is refused. */
	reserve: { params: Reservation; result: WireError | null }
	/** Takes a slot of a provider that limits concurrent calls. Settles once the run may call it. */
	slot: { params: ModelId; result: null }
	leave_slot: { params: null; result: null }
	/**
	 * Journals a model answer with tool calls, and counts the usage since the last one. Settles once that is durable; no tool may
	 * be called before.
	 */
	model: { params: { answer: ModelAnswer; spent: ModelUsage[] }; result: ModelReceipt | null }
	/** Journals a remark. Settles once it is durable. */
	remark: { params: Remark; result: null }
	/** Calls a tool. Main journals the result before it replies. Several calls may be in progress. */
	tool: { params: { call: ToolCallRequest }; result: ToolReply }
	/** Reads the bytes of an attachment. Null: they were deleted. */
	blob: { params: Pick<Attachment, 'blob' | 'media_type'>; result: Uint8Array | null }
}

export interface ModelReceipt {
	/** The current `tokens_elsewhere`; absent for a run without a family. */
	tokens_elsewhere?: number
	/** The answer for the conversation, with its secrets redacted; absent if it has none. Main keeps the original calls. */
	answer?: ModelAnswer
}

export type ToolReply =
	/** `waited_ms`: for how long the call waited for a person, which is not active time. */
	| { status: 'done'; ok: boolean; content: string; attachments?: Attachment[]; waited_ms?: number }
	/** The run waits for the answer to a question, or for the end of a run: the loop ends with the outcome `paused`. */
	| { status: 'paused'; waits_for: string }

export type Method = keyof Calls

export type ToMain =
	/** First message: which thread has the run (`worker_threads.threadId`). */
	| { kind: 'hello'; thread: number }
	/** A persisted event, which needs no answer. */
	| { kind: 'event'; event: WorkerEvent }
	/** A piece of the unfinished answer; delivered live, not stored. */
	| { kind: 'stream'; content: string }
	| { kind: 'sent'; request: SentRequest }
	| { [M in Method]: { kind: 'call'; id: number; method: M; params: Calls[M]['params'] } }[Method]
	/** Last message. Null: the worker's code ended the run without an outcome. */
	| { kind: 'outcome'; outcome: RunOutcome | null }

export type ToWorker =
	| { kind: 'reply'; id: number; value: unknown }
	| { kind: 'reply'; id: number; error: WireError }
	| { kind: 'abort'; reason: string }

/** A message to a thread, about one of its runs. */
export interface ToThread {
	/** Unique within the thread. */
	run: number
	message:
		| { kind: 'order'; order: Omit<RunOrder, 'tools' | 'history'>; tools: ToolSet; history: SentHistory }
		| ToWorker
}

/** A run's history begins with that of the run before it: a thread keeps histories, and gets only the added messages. */
export interface SentHistory {
	/** The thread keeps the history under this id. Absent: it does not keep it. */
	id?: number
	/** How many of its messages the thread already has. The thread drops any further ones. */
	from: number
	/** The messages after these. */
	added: readonly ChatMessage[]
	/** Histories that are no longer kept. */
	forget: number[]
}

/** Tools are the largest part of an order, and the same for many runs: a thread gets each list once. */
export interface ToolSet {
	id: number
	/** Absent: the thread has it. */
	list?: ToolSpec[]
	/** The id of a list that the thread can drop. */
	forget?: number
}

/** What a thread sends: messages of its runs, by their numbers. */
export type FromThread = { run: number; message: ToMain }[]

/** The one task of a thread; see core/runs/worker-threads.ts. */
export interface WorkerTask {
	port: MessagePort
}

/** Tokens of all model answers in a journal. Other kinds of steps use none, including those that only main has. */
export function usageOf(journal: readonly { readonly kind: string }[]): Usage {
	const usage = { input_tokens: 0, output_tokens: 0 }
	for (const step of journal) if (isAnswer(step)) addUsage(usage, step.answer.usage)
	return usage
}

/** Whether a step of a journal is a model's answer. */
export function isAnswer(step: { readonly kind: string }): step is Extract<Step, { kind: 'model' }> {
	return step.kind === 'model'
}

/** Adds to `sum`. */
export function addUsage(
	sum: Usage,
	{ input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost }: Usage,
): void {
	sum.input_tokens += input_tokens
	sum.output_tokens += output_tokens
	if (cached_tokens !== undefined) sum.cached_tokens = (sum.cached_tokens ?? 0) + cached_tokens
	if (reasoning_tokens !== undefined) sum.reasoning_tokens = (sum.reasoning_tokens ?? 0) + reasoning_tokens
	if (cost !== undefined) sum.cost = roundCost((sum.cost ?? 0) + cost)
}

/** Rounds to billionths, so that the sum of many small costs has no visible error. */
export function roundCost(cost: number): number {
	return Math.round(cost * 1e9) / 1e9
}
