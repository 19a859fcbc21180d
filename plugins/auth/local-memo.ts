import { peerOf } from '../shared/peer.ts'
import { whyNotLocal } from './local.ts'
import type { Arrival, LocalRule, NotLocal } from './local.ts'

/** Of the headers that are kept with a connection, in code units: there may be 20,000 connections. */
const KEPT = 2_048

interface Known extends Pick<Arrival, 'method' | 'rawHeaders'> {
	changes: boolean
	notLocal: NotLocal | null
}

/**
 * As `whyNotLocal`, for many requests: a client sends nearly the same with each request of its connection, so the last result
 * is kept with the connection, and applies as long as the headers are the same.
 */
export function rememberNotLocal(
	rule: Omit<LocalRule, 'changes'>,
): (request: Arrival, changes: boolean) => NotLocal | null {
	const last = new WeakMap<object, Known>()
	return (request, changes) => {
		const { socket, method, rawHeaders, url = '/' } = request
		// One that was forwarded is from another client than the one before.
		const isOwn = peerOf(request) === socket && url.startsWith('/')
		const known = isOwn ? last.get(socket) : undefined
		if (known?.changes === changes && known.method === method && areSame(known.rawHeaders, rawHeaders))
			return known.notLocal
		const notLocal = whyNotLocal(request, { ...rule, changes })
		const size = rawHeaders.reduce((sum, text) => sum + text.length, 0)
		if (isOwn && size <= KEPT) last.set(socket, { method, rawHeaders, changes, notLocal })
		return notLocal
	}
}

function areSame(some: readonly string[], others: readonly string[]): boolean {
	return some.length === others.length && some.every((text, at) => text === others[at])
}
