/**
 * What a model provider is: the only interface between the loop and models.
 *
 * The life of one call:
 * 1. `ask` gets a whole conversation and returns one whole reply; it keeps nothing between calls but connections.
 * 2. While the answer is made, its text may be shown piece by piece. Nothing but the display uses those pieces.
 * 3. A reply is either a whole answer or a failure. Nothing of an attempt that broke off may be in an answer.
 *
 * A provider must never
 * - throw or reject: failures are data, so that the code that retries can decide;
 * - retry by itself, or wait for longer than the order's `timeout_ms`;
 * - answer with a tool call whose arguments it did not receive to their end;
 * - read the environment: all that it may use is in the order;
 * - let a key into a failure's message.
 */
import type { FaultCode } from '../../core/errors.ts'
import type { Attachment, ModelAnswer, ModelMind, ToolCallRequest, ToolSpec, Usage } from '../../core/protocol.ts'
import type { AnswerForm, ModelOrder } from '../order.ts'
import type { StatedLimit } from './too-long.ts'

export interface Provider {
	ask(order: ModelOrder, request: ModelRequest, io: AskIo): Promise<ModelReply>
}

/** One message of the conversation, in no provider's own format. */
export type Turn =
	| { role: 'user'; content: string; attachments?: Attachment[] }
	| ({ role: 'assistant'; content: string; tool_calls: ToolCallRequest[] } & ModelMind)
	| { role: 'tool'; call_id: string; name: string; ok: boolean; content: string; attachments?: Attachment[] }

export interface ModelRequest {
	system: string | null
	/** Oldest first. */
	turns: Turn[]
	/** Offered to the model; each call of the answer names one of them canonically, or is what the model said. */
	tools: ToolSpec[]
	form?: AnswerForm
	/** Bytes of attachments, by their blobs. Those without bytes are described in words. */
	files?: ReadonlyMap<string, Uint8Array>
}

export interface AskIo {
	/** Aborted: the call ends soon, and its reply is ignored. */
	signal: AbortSignal
	/** A piece of the answer's text, never empty. */
	onText: (text: string) => void
	/** The body of each request that is sent. */
	onSent?: ((body: string) => void) | undefined
	/** Called with the server's message when it refused the tools, which are now described in text. */
	onToolsRefused?: ((message: string) => void) | undefined
}

export type ModelReply = { status: 'answered'; answer: ModelAnswer } | { status: 'failed'; failure: ModelFailure }

export type ModelCode = Extract<FaultCode, `model_${string}` | 'context_too_long' | 'limit_tokens' | 'limit_cost'>

export interface ModelFailure {
	code: ModelCode
	/** What the server said, as far as it is fit to be shown. */
	message: string
	/** The same call may succeed later. */
	retryable: boolean
	/** How long the server asks to wait, in milliseconds. */
	retryAfterMs?: number
	/** The HTTP status, where the server answered. */
	status?: number
	/** The field that the server names as the cause. */
	param?: string
	/** As in `WireError`. */
	provider_code?: string
	/** Neither the gateway nor a proxy in front of the server could connect to it. */
	is_unreachable?: true
	/** Of a request that is too long. */
	stated?: StatedLimit
	/** The answer reached its greatest length in the middle of a tool call. */
	is_cut?: true
	/** What the server charges for the failed call, such as for an answer that was cut off. */
	usage?: Usage
}

/** For a provider's own use, where a failure is found deep down. */
export class ModelError extends Error {
	readonly code: ModelCode
	readonly retryable: boolean

	constructor(code: ModelCode, message: string, { retryable = false } = {}) {
		super(message)
		this.name = 'ModelError'
		this.code = code
		this.retryable = retryable
	}
}

/**
 * Characters of a failure's message, since some servers answer with whole pages. Far more than is shown: what shortens it further
 * redacts it first (plugins/runs/serve-thread.ts).
 */
const MESSAGE_LIMIT = 8 * 1024

export function failed(
	code: ModelCode,
	message: string,
	{ retryable = false, ...more }: Unsure<Omit<ModelFailure, 'code' | 'message'>> = {},
): ModelReply {
	const text = message.length > MESSAGE_LIMIT ? `${message.slice(0, MESSAGE_LIMIT)}…` : message
	const known = Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined))
	return { status: 'failed', failure: { code, message: text, retryable, ...known } }
}

type Unsure<T> = { [K in keyof T]?: T[K] | undefined }
