/** Converts Faults to hapi's errors. Separate from core/errors.ts, so that code that only throws Faults does not load Boom. */
import Boom from '@hapi/boom'
import type { Fault, FaultCode, FieldError } from '../errors.ts'

/** The Boom for hapi's answer: Boom's three fields, `code`, and `errors` if fields were invalid. */
export function toBoom(fault: Fault): Boom.Boom {
	const boom = new Boom.Boom(fault.message, { statusCode: fault.status })
	Object.assign(boom.output.headers, fault.headers)
	return describe(boom, fault.code, fault.errors)
}

/** Codes with status 500 whose messages are written for the caller: they state what to check. */
const shownWith500: ReadonlySet<FaultCode> = new Set(['backup_failed'])

/** Adds `code` (and `errors`) to a Boom's body. For status 500 most messages stay hidden: they may contain internals. */
export function describe(boom: Boom.Boom, code: FaultCode, errors?: FieldError[]): Boom.Boom {
	const payload = boom.output.payload as Boom.Payload & { code?: string; errors?: FieldError[] }
	payload.code = code
	if (errors) payload.errors = errors
	if (shownWith500.has(code) || (boom.output.statusCode !== 500 && code !== 'internal')) payload.message = boom.message
	return boom
}
