/**
 * The one table of error codes, and the one error class that carries them.
 *
 * A `Fault` is an expected failure: it has a stable code, a status for HTTP and a message that says what to change.
 * Anything else that is thrown is a bug and reaches a client only as `internal`.
 */
import Boom from '@hapi/boom'

/** Every stable code with the HTTP status that it answers with. Codes of failed runs use the status a caller would see. */
export const statusOf = {
	invalid_request: 400,
	invalid_arguments: 400,
	unauthorized: 401,
	forbidden: 403,
	not_found: 404,
	method_not_allowed: 405,
	conflict: 409,
	already_exists: 409,
	already_answered: 409,
	idempotency_mismatch: 409,
	fenced: 409,
	payload_too_large: 413,
	unsupported_media_type: 415,
	rate_limited: 429,
	queue_full: 429,
	internal: 500,
	unavailable: 503,
	storage_full: 507,

	model_rejected: 502,
	model_rate_limited: 502,
	model_unavailable: 502,
	model_interrupted: 502,
	model_malformed: 502,
	model_timeout: 504,
	provider_unknown: 400,
	limit_steps: 409,
	limit_tokens: 409,
	limit_wall_time: 409,
	question_expired: 409,
	restart_loop: 500,
	thread_lost: 500,
	tool_unknown: 404,
	tool_failed: 502,
	tool_interrupted: 409,
	stopped: 409,

	address_refused: 400,
	fetch_failed: 502,
	fetch_too_large: 502,
	fetch_timeout: 504,

	vault_denied: 403,
	vault_locked: 503,
	skill_invalid: 400,
	digest_mismatch: 409,
	skill_failed: 502,
	permission_denied: 403,
	sandbox_timeout: 504,
	sandbox_memory: 502,
	sandbox_crash: 502,
	sandbox_busy: 503,
	embedding_failed: 502,
	mcp_unavailable: 503,
	mcp_failed: 502,
	mcp_timeout: 504,
	subagent_limit: 409,
	subagent_failed: 502,
	channel_unavailable: 503,
	pairing_invalid: 400,
	signature_invalid: 401,
	backup_damaged: 400,
	backup_failed: 500,

	config_invalid: 400,
	plugin_invalid: 400,
	plugin_failed: 500,
	home_in_use: 409,
	store_damaged: 500,
} as const satisfies Record<string, number>

export type FaultCode = keyof typeof statusOf

/** One wrong field of a request: where it stands (dotted path, `''` for the whole) and what is wrong with it. */
export interface FieldError {
	path: string
	message: string
}

/** An error as data. Structured clone and JSON lose an error's class and own fields; this survives both. */
export interface WireError {
	code: FaultCode
	message: string
}

export interface FaultOptions {
	errors?: FieldError[]
	/** Extra response headers, such as `retry-after`. */
	headers?: Record<string, string>
	cause?: unknown
}

export class Fault extends Error {
	readonly code: FaultCode
	readonly errors: FieldError[] | undefined
	readonly headers: Record<string, string>

	constructor(code: FaultCode, message: string, options: FaultOptions = {}) {
		super(message, options.cause === undefined ? undefined : { cause: options.cause })
		this.name = 'Fault'
		this.code = code
		this.errors = options.errors
		this.headers = options.headers ?? {}
	}

	get status(): number {
		return statusOf[this.code]
	}
}

/** True for a fault with one of the given codes (any fault where none is given). */
export function isFault(error: unknown, ...among: FaultCode[]): error is Fault {
	return error instanceof Fault && (among.length === 0 || among.includes(error.code))
}

export function toWire(error: unknown): WireError {
	if (isFault(error)) return { code: error.code, message: error.message }
	return { code: 'internal', message: messageOf(error) }
}

export function fromWire(error: WireError): Fault {
	return new Fault(error.code in statusOf ? error.code : 'internal', error.message)
}

export function messageOf(error: unknown): string {
	if (error instanceof Error) return error.message
	try {
		return String(error)
	} catch {
		return 'something that has no text was thrown' // such as Object.create(null)
	}
}

/** The Boom that hapi answers with: Boom's three fields, plus `code`, plus `errors` where fields were wrong. */
export function toBoom(fault: Fault): Boom.Boom {
	const boom = new Boom.Boom(fault.message, { statusCode: fault.status })
	Object.assign(boom.output.headers, fault.headers)
	return describe(boom, fault.code, fault.errors)
}

/** Status 500, and yet written for whoever asked: it says what to look after. */
const told: ReadonlySet<FaultCode> = new Set(['backup_failed'])

/** Adds `code` (and `errors`) to a Boom's body. For status 500 most messages stay hidden: they may hold internals. */
export function describe(boom: Boom.Boom, code: FaultCode, errors?: FieldError[]): Boom.Boom {
	const payload = boom.output.payload as Boom.Payload & { code?: string; errors?: FieldError[] }
	payload.code = code
	if (errors) payload.errors = errors
	if (told.has(code) || (boom.output.statusCode !== 500 && code !== 'internal')) payload.message = boom.message
	return boom
}
