import { guardedFetch } from '../../core/fetch/guarded-fetch.ts'
import type { DiscordConfig } from './config.ts'
import type { Connection } from '../channels/adapter.ts'

const TIMEOUT_MS = 20_000

/** Returns the function that downloads attachments. Their addresses must be public, unless they are on the server of `api_root`. */
export function fileLoader({ api_root }: DiscordConfig): NonNullable<Connection['load']> {
	return async (url, { signal, max_bytes }) => {
		const isOwn = URL.parse(url)?.origin === URL.parse(api_root)?.origin
		const policy = { protocols: ['https:', ...(isOwn ? (['http:'] as const) : [])], private_first: isOwn } as const
		const response = await guardedFetch(url, { signal }, { policy, max_bytes, timeout_ms: TIMEOUT_MS })
		if (!response.ok) {
			await response.body?.cancel()
			throw new Error(`Discord answered with status ${response.status}`)
		}
		return new Uint8Array(await response.arrayBuffer())
	}
}
