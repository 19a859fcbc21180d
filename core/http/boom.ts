/** Converts Faults to hapi's errors. Apart from core/errors.ts, so that code that only throws faults does not load Boom. */
import Boom from '@hapi/boom'
import type { Fault, FaultCode, FieldError } from '../errors.ts'

/** The Boom that hapi responds with: Boom's three fields, plus `code`, plus `errors` where fields were wrong. */
export function toBoom(fault: Fault): Boom.Boom {
	const boom = new Boom.Boom(fault.message, { statusCode: fault.status })
	Object.assign(boom.output.headers, fault.headers)
	return describe(boom, fault.code, fault.errors)
}

/** Status 500, although written for the caller: it says what to check. */
const shownWith500: ReadonlySet<FaultCode> = new Set(['backup_failed'])

/** Adds `code` (and `errors`) to a Boom's body. For status 500 most messages stay hidden: they may hold internals. */
export function describe(boom: Boom.Boom, code: FaultCode, errors?: FieldError[]): Boom.Boom {
	const payload = boom.output.payload as Boom.Payload & { code?: string; errors?: FieldError[] }
	payload.code = code
	if (errors) payload.errors = errors
	if (shownWith500.has(code) || (boom.output.statusCode !== 500 && code !== 'internal')) payload.message = boom.message
	return boom
}
