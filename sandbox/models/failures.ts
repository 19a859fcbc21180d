/** Converts errors of model calls to failures with the gateway's codes. */
import { fieldsOf } from '../../core/util/is-object.ts'
import { jsonIn } from '../../core/util/json-in.ts'
import { messageOf } from '../../core/errors.ts'
import type { ModelOrder } from '../order.ts'
import { failed, ModelError } from './provider.ts'
import type { ModelFailure, ModelReply } from './provider.ts'
import { isTooLong, statedLimit } from './too-long.ts'
import { listIn, stringIn } from './values.ts'

/** Shorter keys are placeholders for local servers, such as "none"; to redact them would only garble the text. */
const SECRET_LENGTH = 8
/** Limit of the characters of a server's error: some servers answer with whole pages. */
const READ_LIMIT = 8 * 1024

/** An error that a server reported. */
export interface ServerError {
	/** Undefined for an error in the middle of a stream. */
	status?: number | undefined
	/** The provider's code or type. */
	code?: string | undefined
	/** The code alone, if it is a word. */
	provider_code?: string | undefined
	/** The field that it names. */
	param?: string | undefined
	message: string
	headers?: Pick<Headers, 'get'> | undefined
}

/** `named` completes the server's error for the dialect. Keys and values of headers are redacted. */
export function failureOf(
	error: unknown,
	order: ModelOrder,
	named: (reported: ServerError) => ServerError = (reported) => reported,
): ModelReply {
	const server = error instanceof StreamError ? shortened(named(error.reported), order) : undefined
	const { code, message, retryable } = server ? byStatus(server, statusOf(server)) : classify(error, order)
	return failed(code, withoutSecrets(message, order), {
		retryable,
		retryAfterMs: retryAfter(server?.headers, Date.now()),
		status: server && statusOf(server),
		param: server?.param,
		provider_code: server?.provider_code && WORD.exec(withoutSecrets(server.provider_code, order))?.[0],
		stated: code === 'context_too_long' ? statedLimit(message) : undefined,
		...(isUnreachable(error, server?.status) && { is_unreachable: true }),
	})
}

/** A code that may be shown; one with a redacted part does not match. */
const WORD = /^[A-Za-z][\w.-]{0,63}$/

/** Throws StreamError for an error in the middle of a stream, or instead of an answer. */
export function throwErrorIn(value: unknown): void {
	const error = errorIn(value)
	if (error) throw new StreamError(error)
}

/** An error in the body of a response. */
export function errorIn(value: unknown): ServerError | undefined {
	const body = fieldsOf(value)
	// The form of vLLM and similar servers.
	const error = body.error ?? (body.object === 'error' ? body : undefined)
	if (error === undefined || error === null) return undefined
	if (typeof error === 'string') return { message: error }
	const { message, code, type, param, status, n_prompt_tokens: tokens, n_ctx: window } = fieldsOf(error)
	const number = Number(code ?? status)
	const reported = stringIn(message)
	return {
		message: reported ? reported + asideOf(reported, tokens, window) : JSON.stringify(error),
		code: stringIn(code) || stringIn(type) || undefined,
		provider_code: WORD.exec(stringIn(code))?.[0],
		param: stringIn(param) || undefined,
		status: Number.isInteger(number) && number >= 400 && number < 600 ? number : undefined,
	}
}

/** The numbers with which llama.cpp describes a request that is too long; some versions have them only beside the message. */
function asideOf(message: string, tokens: unknown, window: unknown): string {
	const isAside = typeof tokens === 'number' && typeof window === 'number' && !message.includes(String(window))
	return isAside ? `; request (${tokens} tokens), context size (${window} tokens)` : ''
}

/** The error in an event named `error`, whatever its form. */
export function namedError(body: unknown): StreamError {
	return new StreamError(errorIn(body) ?? errorIn({ error: body }) ?? { message: 'the server reports an error' })
}

/** A server sent an error instead of an answer, or in the middle of a stream. */
export class StreamError extends Error {
	readonly reported: ServerError

	constructor(reported: ServerError) {
		super(reported.message)
		this.reported = reported
	}
}

/** There was no response. */
export class ConnectionFailure extends Error {
	constructor(cause: Error) {
		super('the connection to the server failed', { cause })
	}
}

/** The error for a response whose status is not a success. `text`: the body. */
export function refusalOf(status: number, text: string, headers: ServerError['headers']): StreamError {
	const body = jsonIn(text)
	const refused = Array.isArray(body) ? body[0] : body
	const reported = errorIn(refused)
	const message = `${status} ${reported?.message ?? (text || 'status code (no body)')}`.trim()
	return new StreamError({ ...reported, status, message, headers: withDelayIn(refused, headers) })
}

/** Google states the time to wait in the details of the error. */
function withDelayIn(body: unknown, headers: ServerError['headers']): ServerError['headers'] {
	const delay = listIn(fieldsOf(fieldsOf(body).error).details)
		.map((detail) => Number.parseFloat(stringIn(fieldsOf(detail).retryDelay)))
		.find((seconds) => seconds >= 0)
	if (delay === undefined) return headers
	return { get: (name) => headers?.get(name) ?? (name === 'retry-after' ? String(delay) : null) }
}

/** Secrets are redacted before the text is cut, since the cut could leave a part of one. */
function shortened(reported: ServerError, order: ModelOrder): ServerError {
	const { message, code, param } = reported
	return {
		...reported,
		message: withoutSecrets(message, order).slice(0, READ_LIMIT),
		code: code?.slice(0, READ_LIMIT),
		param: param?.slice(0, READ_LIMIT),
	}
}

/**
 * The milliseconds that a server asks to wait: `retry-after-ms` (specific to OpenAI), or `Retry-After` in seconds or as a date
 * (RFC 9110, 10.2.3). Undefined without a valid header.
 */
export function retryAfter(headers: Pick<Headers, 'get'> | undefined, now: number): number | undefined {
	const exact = Number.parseFloat(headers?.get('retry-after-ms') ?? '')
	if (exact >= 0) return exact
	const text = headers?.get('retry-after')?.trim() ?? ''
	if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000
	const date = Date.parse(text)
	return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

type Kind = Pick<ModelFailure, 'code' | 'message' | 'retryable'>

function classify(error: unknown, { provider }: ModelOrder): Kind {
	if (error instanceof ModelError) return { code: error.code, message: error.message, retryable: error.retryable }
	if (error instanceof ConnectionFailure) {
		const advice = codesOf(error).includes('ECONNREFUSED')
			? `; if the server is starting, raise startup_timeout_s of provider ${provider}`
			: ''
		return { code: 'model_unavailable', message: `${error.message}: ${causeOf(error)}${advice}`, retryable: true }
	}
	if (error instanceof SyntaxError)
		return { code: 'model_malformed', message: 'the stream holds an event that is not JSON', retryable: true }
	// Other errors come from reading the body of the response.
	return { code: 'model_interrupted', message: `the stream broke off: ${causeOf(error)}`, retryable: true }
}

/** The status; if there is none, one that corresponds to the provider's code. */
function statusOf({ status, code = '' }: ServerError): number {
	if (status !== undefined) return status
	const [, known] = STATUSES.find(([pattern]) => pattern.test(code)) ?? []
	return known ?? 500
}

const STATUSES: readonly (readonly [code: RegExp, status: number])[] = [
	[/rate_limit|resource_exhausted|insufficient_quota/i, 429],
	[/overloaded|unavailable/i, 529],
	[/^invalid|context_length|content_filter|policy/i, 400],
	[/authentication|permission/i, 401],
]

function byStatus(server: ServerError, status: number): Kind {
	const { message, code = '' } = server
	if (status < 400) {
		const to = server.headers?.get('location') ?? null
		const where = `the server answers with a redirect (${status})${to === null ? '' : ` to ${to}`}`
		return { code: 'model_rejected', message: `${where}; set base_url to the address itself`, retryable: false }
	}
	// A tool's description or the id of a call may also be too long; a shorter conversation would not help.
	const isAboutTools = /^tools[.[]|id$/.test(server.param ?? '')
	if (!isAboutTools && isTooLong(status, code, message)) return { code: 'context_too_long', message, retryable: false }
	if (status === 429) {
		// An exhausted account does not recover by waiting.
		return { code: 'model_rate_limited', message, retryable: !/insufficient_quota|billing/.test(code) }
	}
	if (status >= 500 || status === 408 || status === 409 || status === 425) {
		return { code: 'model_unavailable', message, retryable: true }
	}
	return { code: 'model_rejected', message, retryable: false }
}

function withoutSecrets(message: string, { api_key, headers = {} }: ModelOrder): string {
	const secrets = [api_key, ...Object.values(headers)].filter((value) => value !== undefined)
	return secrets
		.filter((value) => value.length >= SECRET_LENGTH)
		.reduce((text, value) => text.replaceAll(value, '[redacted]'), message)
}

/** Codes with which Node and undici report that no connection was made. */
const NOT_CONNECTED = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/

/** A proxy in front of a server that is not running answers 502, 503 or 504. */
function isUnreachable(error: unknown, status: number | undefined): boolean {
	if (status !== undefined) return status >= 502 && status <= 504
	return error instanceof ConnectionFailure && codesOf(error).some((code) => NOT_CONNECTED.test(code))
}

function codesOf(error: unknown): string[] {
	const inner = innermost(error)
	const all = inner instanceof AggregateError ? inner.errors : [inner]
	return all.map((one) => String((one as { code?: unknown } | undefined)?.code))
}

/** The innermost cause states what happened; the outer error is only "fetch failed". */
function causeOf(error: unknown): string {
	const inner = innermost(error)
	if (inner instanceof AggregateError && inner.errors.length > 0) return inner.errors.map(messageOf).join(', ')
	return messageOf(inner)
}

function innermost(error: unknown): unknown {
	let inner = error
	for (let depth = 0; depth < 5 && inner instanceof Error && inner.cause !== undefined; depth++) inner = inner.cause
	return inner
}
