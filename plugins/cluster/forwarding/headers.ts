import { REQUEST_ID } from '../../../core/http/request-id.ts'
import { FORWARDED } from './proof.ts'

/** They concern one connection, and this one is another (RFC 9110, section 7.6.1). */
const ofConnection = new Set([
	'connection',
	'keep-alive',
	'proxy-connection',
	// No trailers are forwarded, and Node refuses to announce them without chunks.
	'trailer',
	'transfer-encoding',
	'upgrade',
	// Answered at this connection already.
	'expect',
])

export interface ForwardedAs {
	/** A probe has no body. */
	kind: 'request' | 'upgrade' | 'probe'
	requestId: string
}

/** The parts of a request that are read. */
interface Received {
	rawHeaders: readonly string[]
	method?: string | undefined
	httpVersion?: string
}

/**
 * The headers of a request as they are forwarded: name, value, name, value … as received, in their order and with doubles,
 * since the rule for local callers reads them so (plugins/auth/local.ts).
 */
export function forwardedHeaders(
	{ rawHeaders, method = 'GET', httpVersion }: Received,
	{ kind, requestId, proof }: ForwardedAs & { proof: string },
): string[] {
	const kept = passedHeaders(rawHeaders, [REQUEST_ID, ...(kind === 'probe' ? ['content-length'] : [])])
	if (kind === 'request') {
		const coding = valueOf(rawHeaders, 'transfer-encoding')
		if (coding !== undefined) kept.push('transfer-encoding', coding)
		// Node would announce a body.
		else if (!['GET', 'HEAD'].includes(method) && valueOf(rawHeaders, 'content-length') === undefined)
			kept.push('content-length', '0')
	}
	// The rule also reads the HTTP version, which is lost: the forwarded request has that of this connection.
	if (httpVersion === '1.0') kept.push('via', '1.0 svc-gateway')
	const connection =
		kind === 'upgrade' ? ['connection', 'Upgrade', 'upgrade', 'websocket'] : ['connection', 'keep-alive']
	return [...kept, REQUEST_ID, requestId, FORWARDED, proof, ...connection]
}

/**
 * The headers of a request or an answer without these, and without those of the connection. What `Connection` names is
 * kept: a client could name a header that a proxy added, and count as local without it, or `content-length`, and its
 * body would be read as further requests.
 */
export function passedHeaders(rawHeaders: readonly string[], except: readonly string[] = []): string[] {
	return pairsOf(rawHeaders)
		.filter(([name]) => !ofConnection.has(name.toLowerCase()) && !except.includes(name.toLowerCase()))
		.flat()
}

/** Of the first with this name, which is lower case. */
export function valueOf(rawHeaders: readonly string[], name: string): string | undefined {
	return pairsOf(rawHeaders).find(([one]) => one.toLowerCase() === name)?.[1]
}

export function pairsOf(rawHeaders: readonly string[]): [name: string, value: string][] {
	return Array.from({ length: rawHeaders.length / 2 }, (_, at) => [
		rawHeaders[2 * at] as string,
		rawHeaders[2 * at + 1] as string,
	])
}
