import { Fault, isFault } from '../errors.ts'
import { tooLarge } from './body.ts'

/** Converts errors of undici and the system to a Fault that names the host and the reason. Returns Faults unchanged. */
export function errorOf(error: unknown, { host, port }: URL, maxBytes: number): Fault {
	const chain = causes(error)
	const fault = chain.find((cause) => isFault(cause))
	if (fault) return fault
	const codes = chain.map(codeOf)
	if (codes.includes('UND_ERR_RES_EXCEEDED_MAX_SIZE')) return tooLarge(maxBytes)
	if (codes.includes('UND_ERR_HEADERS_OVERFLOW'))
		return new Fault('fetch_too_large', `${host} answered with headers that are too large`, { cause: error })
	const late = codes.find((code) => code !== undefined && /^UND_ERR_.*_TIMEOUT$|^ETIMEDOUT$/.test(code))
	if (late) return new Fault('fetch_timeout', `${host} did not answer in time (${late})`, { cause: error })
	if (chain.some((cause) => cause instanceof Error && cause.message === 'bad port')) {
		const why = `port ${port} is reserved for another protocol, so HTTP clients do not call ${host}`
		return new Fault('address_refused', `${why}; use another port`, { cause: error })
	}
	const last = chain.at(-1)
	const code = codes.findLast((known) => known !== undefined)
	const why = code === undefined ? (last instanceof Error ? last.message : 'no reason given') : inWords(code)
	return new Fault('fetch_failed', `${host} could not be fetched: ${why}`, { cause: error })
}

/** Explains the most frequent codes. */
function inWords(code: string): string {
	if (code === 'ENOTFOUND') return `its name has no address (${code})`
	if (code === 'EAI_AGAIN') return `the name server did not answer (${code})`
	if (code === 'ECONNREFUSED') return `nothing answers at its port (${code})`
	if (code === 'ERR_SSL_WRONG_VERSION_NUMBER')
		return `its port does not speak TLS; try an address that begins with http:// (${code})`
	if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `its certificate is for another name (${code})`
	if (code === 'CERT_HAS_EXPIRED') return `its certificate has expired (${code})`
	if (UNTRUSTED.has(code))
		return `this machine does not trust the issuer of its certificate; set NODE_EXTRA_CA_CERTS to a file with the certificate of that authority (${code})`
	return code
}

const UNTRUSTED = new Set([
	'DEPTH_ZERO_SELF_SIGNED_CERT',
	'SELF_SIGNED_CERT_IN_CHAIN',
	'UNABLE_TO_GET_ISSUER_CERT',
	'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
	'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/** An error and what caused it, outermost first. */
function causes(error: unknown): unknown[] {
	const chain: unknown[] = []
	for (let one = error; one !== undefined && one !== null && chain.length < 8; one = (one as { cause?: unknown }).cause)
		chain.push(one)
	return chain
}

function codeOf(error: unknown): string | undefined {
	const { code } = Object(error) as { code?: unknown }
	return typeof code === 'string' ? code : undefined
}
