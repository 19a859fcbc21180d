import { peerOf } from '../shared/peer.ts'
import { whyNotLocal } from './local.ts'
import type { IncomingRequest, LocalRule, NotLocal } from './local.ts'

/** Limit of the headers that are remembered for a connection, in code units: there may be 20,000 connections. */
const HEADERS_LIMIT = 2_048

interface Remembered extends Pick<IncomingRequest, 'method' | 'rawHeaders' | 'httpVersion'> {
	changes: boolean
	notLocal: NotLocal | null
}

/**
 * As `whyNotLocal`, with a cache of the last result of each connection. Most clients send the same headers with every request of
 * a connection.
 */
export function rememberNotLocal(
	rule: Omit<LocalRule, 'changes'>,
): (request: IncomingRequest, changes: boolean) => NotLocal | null {
	const last = new WeakMap<object, Remembered>()
	return (request, changes) => {
		const { socket, method, rawHeaders, httpVersion = '1.1', url = '/' } = request
		// Forwarded requests on one connection come from different clients.
		const isDirect = peerOf(request) === socket && url.startsWith('/')
		const known = isDirect ? last.get(socket) : undefined
		const isSame = known?.changes === changes && known.method === method && known.httpVersion === httpVersion
		if (isSame && areSame(known.rawHeaders, rawHeaders)) return known.notLocal
		const notLocal = whyNotLocal(request, { ...rule, changes })
		const size = rawHeaders.reduce((sum, text) => sum + text.length, 0)
		if (isDirect && size <= HEADERS_LIMIT) last.set(socket, { method, rawHeaders, httpVersion, changes, notLocal })
		return notLocal
	}
}

function areSame(some: readonly string[], others: readonly string[]): boolean {
	return some.length === others.length && some.every((text, at) => text === others[at])
}
