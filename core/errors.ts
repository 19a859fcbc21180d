/**
 * The general error codes, and the one error class that carries a code.
 *
 * A `Fault` is an expected failure: it has a stable code, a status for HTTP and a message that says what to change.
 * Anything else that is thrown is a bug and reaches a client only as `internal`.
 */

/** The codes that no plugin owns, with the HTTP status of each. Codes of failed runs have the status that a caller would see. */
export const generalCodes = {
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
	model_empty: 502,
	model_filtered: 502,
	model_output_invalid: 502,
	context_too_long: 502,
	provider_unknown: 400,
	limit_steps: 409,
	limit_tokens: 409,
	limit_wall_time: 409,
	limit_cost: 409,
	repeated_calls: 409,
	question_expired: 409,
	approval_refused: 403,
	restart_loop: 500,
	upgrade_incompatible: 500,
	thread_lost: 500,
	tool_unknown: 404,
	tool_failed: 502,
	tool_interrupted: 409,
	stopped: 409,

	address_refused: 400,
	fetch_failed: 502,
	fetch_too_large: 502,
	fetch_timeout: 504,

	digest_mismatch: 409,
	permission_denied: 403,
	subagent_failed: 502,
	backup_damaged: 400,
	backup_failed: 500,

	config_invalid: 400,
	plugin_invalid: 400,
	plugin_failed: 500,
	home_in_use: 409,
	store_damaged: 500,
} as const satisfies Record<string, number>

/**
 * The codes that plugins add. Each plugin's `contract.ts` adds its own, and its definition their statuses (`errors`):
 *
 *     declare module '../../core/errors.ts' { interface ErrorCodes extends Record<'clock_stopped', true> {} }
 */
// oxlint-disable-next-line typescript/no-empty-interface -- grows by declaration merging
export interface ErrorCodes {}

export type FaultCode = keyof typeof generalCodes | keyof ErrorCodes

/** Statuses of plugins' codes, for all gateways of this process; bounded by the plugins that were ever loaded. */
const pluginCodes = new Map<string, number>()

/** Makes a plugin's codes known to this process. */
export function declareCodes(codes: Readonly<Record<string, { status: number }>>): void {
	for (const [code, { status }] of Object.entries(codes)) pluginCodes.set(code, status)
}

/** The HTTP status of a code; 500 for one that no loaded plugin declares. */
export function statusOf(code: string): number {
	return isGeneralCode(code) ? generalCodes[code] : (pluginCodes.get(code) ?? 500)
}

/** Whether the code is one of the gateway itself, not of a plugin. */
export function isGeneralCode(code: string): code is keyof typeof generalCodes {
	return Object.hasOwn(generalCodes, code)
}

/** A code from outside this process. Accepts any string of the right form, since workers do not have the codes of plugins. */
export function codeIn(value: unknown): FaultCode {
	return typeof value === 'string' && CODE.test(value) ? (value as FaultCode) : 'internal'
}

/** The form of every code. */
export const CODE = /^[a-z][a-z0-9_]{0,63}$/

/**
 * One wrong field of a request: its dotted path (`''` for the whole body) and what is wrong with it. Mistakes in
 * gateway.yaml also have `line` and `column`, from 1.
 */
export interface FieldError {
	path: string
	message: string
	line?: number
	column?: number
}

/** The fields of an error's body are fixed, so a hint is sent in a header. */
export const HINT_HEADER = 'x-hint'

/** A request that would help. It is appended to the message: `; POST /v1/agents creates one`. */
export interface Hint {
	/** Method and path as in the API description: `PATCH /v1/agents/{name}`. */
	route: string
	/** Values of the path's parameters. */
	params?: Readonly<Record<string, string>>
	/** What the request does: `creates one`. */
	does: string
	/** Replaces method and path in the message, for readers who know the request by another name. */
	known_as?: string
}

/** A hint as JSON in the header `x-hint` of an error. The message contains `request` verbatim. */
export interface WireHint extends Pick<Hint, 'route' | 'params'> {
	request: string
}

/** An error as data. Structured clone and JSON lose an error's class and own fields; this survives both. */
export interface WireError {
	code: FaultCode
	message: string
	/** The error code of the model's provider: 1-64 of `A-Z a-z 0-9 _ . -`. */
	provider_code?: string
	/** The HTTP status of the provider's refusal. */
	provider_status?: number
}

export interface FaultOptions {
	errors?: FieldError[]
	/** Appended to the message. */
	hint?: Hint
	/** Extra response headers, such as `retry-after`. */
	headers?: Record<string, string>
	/** As in `WireError`. */
	provider_code?: string | undefined
	provider_status?: number | undefined
	cause?: unknown
}

/** An expected error, whose code and message callers see. The message states what to change. */
export class Fault extends Error {
	readonly code: FaultCode
	readonly errors: FieldError[] | undefined
	readonly headers: Record<string, string>
	readonly provider_code: string | undefined
	readonly provider_status: number | undefined
	readonly #said: string

	constructor(code: FaultCode, message: string, options: FaultOptions = {}) {
		const hint = options.hint && wireHint(options.hint)
		const whole = hint ? `${message}; ${hint.request} ${options.hint?.does}` : message
		super(whole, options.cause === undefined ? undefined : { cause: options.cause })
		this.name = 'Fault'
		this.code = code
		this.#said = message
		this.errors = options.errors
		this.provider_code = options.provider_code
		this.provider_status = options.provider_status
		this.headers = { ...options.headers, ...(hint && { [HINT_HEADER]: inAscii(JSON.stringify(hint)) }) }
	}

	get status(): number {
		return statusOf(this.code)
	}

	/** The message without its hint, for readers who cannot send that request. */
	get said(): string {
		return this.#said
	}
}

function wireHint({ route, params, known_as }: Hint): WireHint {
	const request = known_as ?? route.replaceAll(/\{(\w+)\}/g, (whole, name: string) => params?.[name] ?? whole)
	return { route, ...(params && { params }), request }
}

/** A header holds ASCII only. */
function inAscii(json: string): string {
	return json.replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The error for a mistake in a plugin: its code, its files or its settings. */
export function pluginInvalid(message: string, cause?: unknown): Fault {
	return new Fault('plugin_invalid', message, { cause })
}

/** True for a fault with one of the given codes (any fault if no code is given). */
export function isFault(error: unknown, ...among: FaultCode[]): error is Fault {
	return error instanceof Fault && (among.length === 0 || among.includes(error.code))
}

/** The error that a caller may see: a Fault as it is; for any other error, one that refers to the log. */
export function shownFault(error: unknown): Fault {
	return isFault(error) ? error : new Fault('internal', 'the gateway failed; its log shows why')
}

/** The error as plain data, for another thread or the store. An error that is not a Fault gets the code `internal`. */
export function toWire(error: unknown): WireError {
	if (isFault(error)) {
		const { code, message, provider_code, provider_status } = error
		return {
			code,
			message,
			...(provider_code !== undefined && { provider_code }),
			...(provider_status !== undefined && { provider_status }),
		}
	}
	return { code: 'internal', message: messageOf(error) }
}

/** The Fault of an error from another thread or the store. An invalid code becomes `internal`. */
export function fromWire({ code, message, provider_code, provider_status }: WireError): Fault {
	return new Fault(codeIn(code), message, { provider_code, provider_status })
}

/** The message of any thrown value. Never throws. */
export function messageOf(error: unknown): string {
	if (error instanceof Error) return error.message
	try {
		const text = String(error)
		return text.startsWith('[object ') ? (JSON.stringify(error) ?? text) : text
	} catch {
		return 'something that has no text was thrown' // such as Object.create(null)
	}
}
