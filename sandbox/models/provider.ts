/**
 * The contract of model providers: the only interface between the loop and models.
 *
 * One call:
 * 1. `ask` gets a whole conversation and returns one complete reply. Between calls it keeps only connections.
 * 2. During the call, text of the answer may be shown in pieces. They are used only for display.
 * 3. A reply is either a complete answer or a failure. An answer must not contain anything from an interrupted attempt.
 *
 * A provider must never
 * - throw or reject: failures are data, so that the code that retries can decide;
 * - retry by itself, or wait for longer than the order's `timeout_ms`;
 * - answer with a tool call whose arguments are incomplete;
 * - read the environment: everything that it may use is in the order;
 * - include a key in the message of a failure.
 */
import { defined } from '../../core/util/defined.ts'
import { excerpt } from '../../core/util/excerpt.ts'
import type { FaultCode } from '../../core/errors.ts'
import type { Attachment, ModelAnswer, ModelReasoning, ToolCallRequest, ToolSpec, Usage } from '../../core/protocol.ts'
import type { AnswerForm, ModelOrder } from '../order.ts'
import type { StatedLimit } from './too-long.ts'

export interface Provider {
	ask(order: ModelOrder, request: ModelRequest, io: AskIo): Promise<ModelReply>
}

/** One message of the conversation, independent of a provider's format. */
export type Turn =
	| { role: 'user'; content: string; attachments?: Attachment[] }
	| ({ role: 'assistant'; content: string; tool_calls: ToolCallRequest[] } & ModelReasoning)
	| { role: 'tool'; call_id: string; name: string; ok: boolean; content: string; attachments?: Attachment[] }

export interface ModelRequest {
	system: string | null
	/** Oldest first. */
	turns: Turn[]
	/** Offered to the model. Calls in the answer have their canonical names; unknown names are kept. */
	tools: ToolSpec[]
	form?: AnswerForm
	/** Bytes of attachments, by their blobs. Those without bytes are described in words. */
	files?: ReadonlyMap<string, Uint8Array>
}

export interface AskIo {
	/** After an abort, the call ends soon, and its reply is ignored. */
	signal: AbortSignal
	/** Called with each piece of the answer's text, never empty. */
	onText: (text: string) => void
	/** Called with the body of each request. */
	onSent?: ((body: string) => void) | undefined
	/** Called with the server's message when it refused the tools, which are now described in text. */
	onToolsRefused?: ((message: string) => void) | undefined
}

export type ModelReply = { status: 'answered'; answer: ModelAnswer } | { status: 'failed'; failure: ModelFailure }

export type ModelCode = Extract<FaultCode, `model_${string}` | 'context_too_long' | 'limit_tokens' | 'limit_cost'>

export interface ModelFailure {
	code: ModelCode
	/** The server's message, without secrets. */
	message: string
	/** The same call may succeed later. */
	retryable: boolean
	/** How long the server asks to wait, in milliseconds. */
	retryAfterMs?: number
	/** The HTTP status, if the server answered. */
	status?: number
	/** The field that the server names as the cause. */
	param?: string
	/** As in `WireError`. */
	provider_code?: string
	/** Neither the gateway nor a proxy in front of the server could connect to it. */
	is_unreachable?: true
	/** The limit that the server stated when it refused a request as too long. */
	stated?: StatedLimit
	/** The answer reached its maximum length in the middle of a tool call. */
	is_cut?: true
	/** The usage for which the server charges although the call failed, for example because the answer was cut off. */
	usage?: Usage
}

/** Thrown within a provider, which converts it to a failure. */
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
 * Limit of the characters of a failure's message, since some servers answer with whole pages. Far more than is shown: the message is
 * redacted before it is shortened further (plugins/runs/serve-thread.ts).
 */
const MESSAGE_LIMIT = 8 * 1024

export function failed(
	code: ModelCode,
	message: string,
	{ retryable = false, ...details }: Undefinable<Omit<ModelFailure, 'code' | 'message'>> = {},
): ModelReply {
	const text = excerpt(message, MESSAGE_LIMIT)
	return { status: 'failed', failure: { code, message: text, retryable, ...defined(details) } }
}

type Undefinable<T> = { [K in keyof T]?: T[K] | undefined }
