import type { IncomingMessage } from 'node:http'
import { REQUEST_ID } from '../../../core/http/request-id.ts'
import { FORWARDED } from './proof.ts'

/** Headers of a single connection, which are not forwarded (RFC 9110, section 7.6.1). */
const hopByHop = new Set([
	'connection',
	'keep-alive',
	'proxy-connection',
	// No trailers are forwarded, and Node refuses to announce them without chunks.
	'trailer',
	'transfer-encoding',
	'upgrade',
	// This gateway has already answered it.
	'expect',
])

export interface ForwardedAs {
	/** A probe has no body. */
	kind: 'request' | 'upgrade' | 'probe'
	requestId: string
}

/**
 * The forwarded headers of a request: name, value, name, value … as received, in their order and with duplicates, since the rule
 * for local callers depends on both (plugins/auth/local.ts).
 */
export function forwardedHeaders(
	{ rawHeaders, method = 'GET', httpVersion }: Pick<IncomingMessage, 'rawHeaders' | 'method' | 'httpVersion'>,
	{ kind, requestId, proof }: ForwardedAs & { proof: string },
): string[] {
	const kept = passedHeaders(rawHeaders, [REQUEST_ID, ...(kind === 'probe' ? ['content-length'] : [])])
	if (kind === 'request') {
		const coding = valueOf(rawHeaders, 'transfer-encoding')
		if (coding !== undefined) kept.push('transfer-encoding', coding)
		// Otherwise Node would announce a body.
		else if (!['GET', 'HEAD'].includes(method) && valueOf(rawHeaders, 'content-length') === undefined)
			kept.push('content-length', '0')
	}
	// The rule also depends on the HTTP version, which forwarding replaces by that of this connection.
	if (httpVersion === '1.0') kept.push('via', '1.0 svc-gateway')
	const connection =
		kind === 'upgrade' ? ['connection', 'Upgrade', 'upgrade', 'websocket'] : ['connection', 'keep-alive']
	return [...kept, REQUEST_ID, requestId, FORWARDED, proof, ...connection]
}

/**
 * The headers of a request or an answer without `except` and hop-by-hop headers. Headers that `Connection` names are kept: a client
 * could name a header that a proxy added, and count as local without it, or `content-length`, and its body would be read as further
 * requests.
 */
export function passedHeaders(rawHeaders: readonly string[], except: readonly string[] = []): string[] {
	return pairsOf(rawHeaders)
		.filter(([name]) => !hopByHop.has(name.toLowerCase()) && !except.includes(name.toLowerCase()))
		.flat()
}

/** The value of the first header with this name. `name`: in lower case. */
export function valueOf(rawHeaders: readonly string[], name: string): string | undefined {
	return pairsOf(rawHeaders).find(([one]) => one.toLowerCase() === name)?.[1]
}

export function pairsOf(rawHeaders: readonly string[]): [name: string, value: string][] {
	return Array.from({ length: rawHeaders.length / 2 }, (_, at) => [
		rawHeaders[2 * at] as string,
		rawHeaders[2 * at + 1] as string,
	])
}
