import type { GuardedInit } from '../../../core/fetch/guarded-fetch.ts'

const MAX_BYTES = 64 * 1024
const TIMEOUT_MS = 10_000

/**
 * Sends requests to the identity provider: at most 64 KiB and 10 s, no redirects. The issuer's address may be private, since the
 * operator configured it. Other addresses from its documents must be public, unless they have the same origin.
 */
export function fetchFrom(issuer: string): (url: string, init?: GuardedInit) => Promise<Response> {
	const { origin, protocol } = new URL(issuer)
	const protocols = protocol === 'http:' ? (['http:', 'https:'] as const) : (['https:'] as const)
	return async (url, { method, headers, body, signal } = {}) => {
		const { guardedFetch } = await import('../../../core/fetch/guarded-fetch.ts') // large, and not needed without a provider
		const policy = { protocols, private_first: new URL(url).origin === origin }
		const init = { method, headers, body, signal, redirect: 'manual' } as const
		return guardedFetch(url, init, { policy, max_bytes: MAX_BYTES, timeout_ms: TIMEOUT_MS })
	}
}
