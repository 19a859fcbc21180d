import { Fault } from '../../core/errors.ts'
import type { FaultCode } from '../../core/errors.ts'

/** A refusal with the seconds after which the caller may try again, at least one, in the header `Retry-After`. */
export function tryLater(code: FaultCode, message: string, seconds: number, cause?: unknown): Fault {
	return new Fault(code, message, { headers: { 'retry-after': String(Math.max(1, Math.ceil(seconds))) }, cause })
}
