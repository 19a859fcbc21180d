import { peerOf } from '../shared/peer.ts'
import { whyNotLocal } from './local.ts'
import type { Arrival, LocalRule, NotLocal } from './local.ts'

/** Limit of the headers that are kept with a connection, in code units: there may be 20,000 connections. */
const KEPT = 2_048

interface Known extends Pick<Arrival, 'method' | 'rawHeaders' | 'httpVersion'> {
	changes: boolean
	notLocal: NotLocal | null
}

/**
 * As `whyNotLocal`, for many requests: most clients send the same headers with each request of a connection, so the last result
 * is kept with the connection, and used again while the headers are the same.
 */
export function rememberNotLocal(
	rule: Omit<LocalRule, 'changes'>,
): (request: Arrival, changes: boolean) => NotLocal | null {
	const last = new WeakMap<object, Known>()
	return (request, changes) => {
		const { socket, method, rawHeaders, httpVersion = '1.1', url = '/' } = request
		// Forwarded requests on one connection come from different clients.
		const isOwn = peerOf(request) === socket && url.startsWith('/')
		const known = isOwn ? last.get(socket) : undefined
		const isSame = known?.changes === changes && known.method === method && known.httpVersion === httpVersion
		if (isSame && areSame(known.rawHeaders, rawHeaders)) return known.notLocal
		const notLocal = whyNotLocal(request, { ...rule, changes })
		const size = rawHeaders.reduce((sum, text) => sum + text.length, 0)
		if (isOwn && size <= KEPT) last.set(socket, { method, rawHeaders, httpVersion, changes, notLocal })
		return notLocal
	}
}

function areSame(some: readonly string[], others: readonly string[]): boolean {
	return some.length === others.length && some.every((text, at) => text === others[at])
}
