import type { GuardedInit } from '../../../core/fetch/guarded-fetch.ts'

const MAX_BYTES = 64 * 1024
const TIMEOUT_MS = 10_000

/**
 * Requests to the identity provider: 64 KiB, 10 s, no redirects. The operator named the issuer, so it may be private. What
 * its documents name may be so on the same origin only.
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
