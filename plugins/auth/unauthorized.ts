import { Fault } from '../../core/errors.ts'

/** `challenge`: the header that tells clients how to authenticate. */
export function unauthorized(message: string, challenge = 'Bearer'): Fault {
	return new Fault('unauthorized', message, { headers: { 'www-authenticate': challenge } })
}
