import { Fault } from '../../core/errors.ts'
import type { FaultOptions } from '../../core/errors.ts'

/** The error for one invalid field of a request. `path`: its dotted path; '' for the whole request. */
export function invalidField(path: string, message: string, options?: Pick<FaultOptions, 'hint' | 'cause'>): Fault {
	return new Fault('invalid_request', message, { ...options, errors: [{ path, message }] })
}
