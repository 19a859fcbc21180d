/**
 * Every message between the main thread and a worker thread, as types. This file and errors.ts are all of ours that the
 * sandbox sees.
 *
 * Each thread has one MessagePort for all of its runs. Main gives it runs by `ToThread`, and the two speak about each by its
 * number: the worker sends `ToMain`, main answers with `ToWorker`. The worker's messages come as lists, since waking the
 * other thread costs more than what is said. Only data crosses: no classes, no functions; errors cross as `WireError`.
 */
import type { MessagePort } from 'node:worker_threads'
import type { WireError } from './errors.ts'

/** Something that happened in a run, not yet in an envelope: only main adds id, time and sequence. */
export interface NewEvent {
	event_type: string
	payload: Record<string, unknown>
}

/** Types of the events that a worker emits; those of other types are main's own. */
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

/** What belongs to a message besides its text: a content part whose bytes the agent stores. */
export interface Attachment {
	type: 'image' | 'file' | 'audio'
	/** `sha256:` and 64 hexadecimal digits: the digest of its bytes. */
	blob: string
	/** As its bytes show; the sender's word counts only where they do not. */
	media_type: string
	/** Bytes. */
	size: number
	/** As the sender named the file, at most 255 characters. */
	name?: string
	/** Of a recording: its length. */
	seconds?: number
	/** Of a recording: what is said in it; null if it could not be transcribed. Absent: nobody tried. */
	transcript?: string | null
}

/**
 * A message of a conversation. Every call of a tool is followed by its result before any other message. Attachments follow
 * the text of their message.
 */
export type ChatMessage =
	/** `run_id`: the turn that it begins; absent where the caller sent the history along. */
	| { role: 'user'; content: string; attachments?: Attachment[]; run_id?: string }
	| ({ role: 'assistant'; content: string; tool_calls?: ToolCallRequest[] } & ModelMind)
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
	/** Canonical name, such as `memory.stm_read`. Providers that allow no dots show it by `wireName`. */
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
	/** All of the request, what came from the provider's cache included. */
	input_tokens: number
	/** All of the answer, its reasoning included. */
	output_tokens: number
	/** Of `input_tokens`: read from the provider's cache. Absent: none, or not told. */
	cached_tokens?: number
	/** Of `output_tokens`: reasoning. Absent: none, or not told. */
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

/** What a call of a model may use at most, as far as that is known before it is made. */
export interface Reservation extends ModelId {
	/** Of the request, as estimated, and of the longest answer; and what the run has used that is not counted yet. */
	tokens: number
	/** Absent if the model has no price. */
	cost?: number
}

/** A request as it was sent to a model's provider. */
export interface SentRequest extends ModelId {
	/** The number of the model answer in the run that it asks for, from 1. */
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
	/** Canonical name where the model named a known tool, otherwise what the model said. */
	name: string
	/** The arguments as the model wrote them: JSON text, which may be malformed. */
	arguments: string
}

/** What a provider must see again with its answer, such as reasoning items and signatures. Shown to nobody else. */
export interface ProviderState extends ModelId {
	/** It is replayed to the same kind of API, provider and model only. */
	kind: string
	/** JSON as the dialect wrote it, at most 256 KiB. */
	data: string
	/** Of `data`: a state that was changed since, such as by redaction, is not replayed. */
	digest: string
}

/** What belongs to an answer and is no part of its text. */
export interface ModelMind {
	/** What the model thought, as far as its provider tells. */
	reasoning?: string
	provider_state?: ProviderState
}

/** Why a model stopped, whatever its provider calls it. */
export type FinishReason = 'stop' | 'tool_calls' | 'length' | 'content_filter' | 'other'

/** What a model said, whole. Nothing of a call that broke off is ever taken into one. */
export interface ModelAnswer extends ModelMind, ModelId {
	/** Empty, or blank, where the model said nothing; it may have reasoned all the same. */
	content: string
	tool_calls: ToolCallRequest[]
	usage: Usage
	/** Tokens of its request, estimated as `tokensIn` does. */
	estimate?: number
	/** The same as its provider counted them: `usage` may be that of several calls. */
	request_tokens?: number
	/** Tokens of requests to its model, by the estimate, if the model refused a longer request before this answer. */
	limit?: number
	/** The window of its model, in tokens, if the server stated it in that refusal. */
	window?: number
	/** Version 0.1.0 journalled the provider's own word. */
	finish_reason: FinishReason
}

/** What brought a run to its end before the model was done. */
export type EndReason = 'limit_steps' | 'limit_tokens' | 'limit_wall_time' | 'repeated_calls'

/** What the gateway tells the model about the course of its run; shown after the latest result. */
export interface Remark {
	/** A warning is made once for each reason. */
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
	 * `answer` is the final model answer, not yet journalled. Its calls, where it has any, are of the client's tools.
	 * `spent`: what was used since the last answer that was journalled.
	 */
	| { status: 'completed'; answer: ModelAnswer; usage: Usage; spent: ModelUsage[]; ended_by?: EndReason }
	| { status: 'paused'; waits_for: string }
	| { status: 'stopped'; spent?: ModelUsage[] }
	| { status: 'failed'; error: WireError; usage: Usage; spent?: ModelUsage[] }

/** Questions that a worker may ask of the main thread: parameters and result of each. */
export interface Calls {
	/** Reserves a call of a model, in place of the run's last reservation. Not null: why it must not be made. */
	reserve: { params: Reservation; result: WireError | null }
	/** Takes a slot of a provider that limits concurrent calls. Settles once the run may call it. */
	slot: { params: ModelId; result: null }
	/** Gives the slot back. */
	leave_slot: { params: null; result: null }
	/**
	 * Journals a model's answer that wants tools, and counts what was used since the last one. Settles once that is
	 * durable; no tool may be called before.
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
	/** Absent if it may stay as it is: the answer for the conversation, without secrets. Main keeps its calls as they were. */
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

/** Each run of a conversation has the messages of the one before: a thread keeps them, and gets those that were added. */
export interface SentHistory {
	/** The thread keeps the history under this id. Absent: it does not keep it. */
	id?: number
	/** How many of its messages the thread has already. It drops others that it has after these. */
	from: number
	/** The messages after those. */
	added: readonly ChatMessage[]
	/** Histories that are no longer kept. */
	forget: number[]
}

/** Tools are the largest part of an order, and the same for many runs: a thread gets each list once. */
export interface ToolSet {
	id: number
	/** Absent: the thread has it. */
	list?: ToolSpec[]
	/** The thread needs that one no longer. */
	forget?: number
}

/** What a thread sends: messages of its runs, by their numbers. */
export type FromThread = { run: number; message: ToMain }[]

/** The one task of a thread; see core/runs/worker-pool.ts. */
export interface WorkerTask {
	port: MessagePort
}

/** Tokens of all model answers in a journal; steps of other kinds, which only the gateway knows too, count nothing. */
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

/** To billionths: each sum is exact, so that many small costs do not add up to a visible error. */
export function roundCost(cost: number): number {
	return Math.round(cost * 1e9) / 1e9
}
