import { APIConnectionError, APIConnectionTimeoutError, APIError } from 'openai'
import { messageOf } from '../../core/errors.ts'
import type { ModelOrder } from '../../core/protocol.ts'
import { failed, ModelError } from './provider.ts'
import type { ModelCode, ModelReply } from './provider.ts'
import { retryAfter } from './retry-after.ts'

/** A shorter key is a word that local servers are given, such as "none"; to take it out would only garble the text. */
const SECRET_LENGTH = 8

/** What became of a call that threw, with the key taken out of what the server said. */
export function failureOf(error: unknown, { api_key, timeout_ms }: ModelOrder): ModelReply {
	const { code, message, retryable } = classify(error, timeout_ms)
	const retryAfterMs = error instanceof APIError ? retryAfter(error.headers, Date.now()) : undefined
	const isSecret = api_key !== undefined && api_key.length >= SECRET_LENGTH
	const text = isSecret ? message.replaceAll(api_key, '[redacted]') : message
	return failed(code, text, { retryable, retryAfterMs })
}

interface Kind {
	code: ModelCode
	message: string
	retryable: boolean
}

function classify(error: unknown, timeout_ms: number): Kind {
	if (error instanceof ModelError) return { code: error.code, message: error.message, retryable: error.retryable }
	if (error instanceof APIConnectionTimeoutError) {
		return { code: 'model_timeout', message: `no answer within ${timeout_ms / 1000} s`, retryable: true }
	}
	if (error instanceof APIConnectionError) {
		return {
			code: 'model_unavailable',
			message: `the connection to the server failed: ${causeOf(error)}`,
			retryable: true,
		}
	}
	if (error instanceof APIError) return byStatus(error, statusIn(error))
	if (error instanceof SyntaxError) {
		return { code: 'model_malformed', message: 'the stream holds an event that is not JSON', retryable: true }
	}
	// Anything else that is thrown here comes from reading the response's body.
	return { code: 'model_interrupted', message: `the stream broke off: ${causeOf(error)}`, retryable: true }
}

/** An error in the middle of a stream has no status of its own; some servers put one into its code. */
function statusIn({ status, code }: APIError): number {
	if (typeof status === 'number') return status
	const inCode = Number(code)
	if (Number.isInteger(inCode) && inCode >= 400 && inCode < 600) return inCode
	return code === 'rate_limit_exceeded' ? 429 : 500
}

function byStatus(error: APIError, status: number): Kind {
	const { message } = error
	if (status < 400) {
		const to = error.headers instanceof Headers ? error.headers.get('location') : null
		const where = `the server answers with a redirect (${status})${to === null ? '' : ` to ${to}`}`
		return { code: 'model_rejected', message: `${where}; set base_url to the address itself`, retryable: false }
	}
	if (status === 429) {
		// No waiting fills an account.
		return { code: 'model_rate_limited', message, retryable: error.code !== 'insufficient_quota' }
	}
	if (status >= 500 || status === 408 || status === 409 || status === 425) {
		return { code: 'model_unavailable', message, retryable: true }
	}
	return { code: 'model_rejected', message, retryable: false }
}

/** The innermost cause says what happened; what wraps it says "fetch failed". */
function causeOf(error: unknown): string {
	let inner = error
	for (let depth = 0; depth < 5 && inner instanceof Error && inner.cause !== undefined; depth++) inner = inner.cause
	if (inner instanceof AggregateError && inner.errors.length > 0) return inner.errors.map(messageOf).join(', ')
	return messageOf(inner)
}
