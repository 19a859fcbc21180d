import { Fault } from '../../core/errors.ts'
import type { FaultCode } from '../../core/errors.ts'

/** An error with the header `Retry-After`: the seconds until the caller may try again, at least 1. */
export function tryLater(code: FaultCode, message: string, seconds: number, cause?: unknown): Fault {
	return new Fault(code, message, { headers: { 'retry-after': String(Math.max(1, Math.ceil(seconds))) }, cause })
}
