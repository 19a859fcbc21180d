import { jsonIn } from '../../util/json-in.ts'
import type { GuardedInit } from '../../fetch/guarded-fetch.ts'
import { usualLimits } from './contract.ts'
import type { CheckContext, Reply, Request } from './contract.ts'

const MAX_BYTES = 4 * 1024 * 1024

/** Makes `CheckContext.ask`. Requests end when the signal aborts, each after at most `timeout_ms`. */
export function askingUntil(signal: AbortSignal, timeout_ms = usualLimits.request): CheckContext['ask'] {
	return async (url, { method = 'GET', headers, body, private_hosts }: Request = {}): Promise<Reply> => {
		const { guardedFetch } = await import('../../fetch/guarded-fetch.ts') // heavy, and not needed by most checks
		const init: GuardedInit = {
			method,
			headers: {
				accept: 'application/json',
				...(body !== undefined && { 'content-type': 'application/json' }),
				...headers,
			},
			...(body !== undefined && { body: JSON.stringify(body) }),
			redirect: 'manual',
		}
		const response = await guardedFetch(url, init, {
			policy: {
				protocols: ['http:', 'https:'],
				...(private_hosts ? { private_hosts } : { private_first: true }),
			},
			max_bytes: MAX_BYTES,
			timeout_ms,
			signal,
		})
		const { status } = response
		const sent = Date.parse(response.headers.get('date') ?? '')
		const date = Number.isNaN(sent) ? null : sent
		if (!(response.headers.get('content-type') ?? '').includes('json')) {
			// An event stream would never end.
			await response.body?.cancel()
			return { status, date, body: undefined }
		}
		return { status, date, body: jsonIn(await response.text()) }
	}
}
