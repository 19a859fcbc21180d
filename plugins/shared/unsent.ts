import { isFault } from '../../core/errors.ts'

/** Codes of errors that occur before a connection is established. */
const early = new Set([
	'ECONNREFUSED',
	'ENOTFOUND',
	'EAI_AGAIN',
	'EHOSTUNREACH',
	'ENETUNREACH',
	'UND_ERR_CONNECT_TIMEOUT',
])

/** Whether the error of a request proves that nothing was sent. */
export function isUnsent(error: unknown): boolean {
	if (isFault(error, 'address_refused', 'invalid_request')) return true
	for (let one = error, depth = 0; one instanceof Error && depth < 8; one = one.cause, depth++) {
		if (early.has(String((one as { code?: unknown }).code))) return true
		// IPv4 and IPv6 addresses were tried, each with its own error.
		if (one instanceof AggregateError && one.errors.length > 0 && one.errors.every(isUnsent)) return true
	}
	return false
}
