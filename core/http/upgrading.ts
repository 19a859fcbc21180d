/**
 * Answers requests while the home is upgraded, when no plugin runs yet: the probes show the progress, everything else is
 * refused with 503. It shows nothing that needs a token.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { UpgradeProgress } from '../upgrade/progress.ts'

const MOST_RETRY_S = 60

export interface Upgrading {
	version: string
	started_at: string
	progress(): UpgradeProgress
}

/** As `Listeners.current`. */
export function upgrading({ version, started_at, progress }: Upgrading) {
	return {
		request(_address: unknown, { url = '/' }: IncomingMessage, response: ServerResponse): void {
			// Not by URL, which throws for paths such as `//`.
			const [path, query] = url.split('?', 2)
			const { text, remaining_s } = progress()
			const retry = String(Math.min(MOST_RETRY_S, Math.max(1, remaining_s ?? 1)))
			const plain = (status: number, body: string): void =>
				void response
					.writeHead(status, {
						'content-type': 'text/plain; charset=utf-8',
						...(status === 503 && { 'retry-after': retry }),
					})
					.end(body)
			const json = (body: object): void =>
				void response
					.writeHead(503, { 'content-type': 'application/json; charset=utf-8', 'retry-after': retry })
					.end(JSON.stringify(body))

			if (path === '/healthz') return plain(200, 'ok')
			if (path === '/readyz')
				return plain(
					503,
					new URLSearchParams(query).has('verbose') ? `[-]gateway migrating: ${text}\nmigrating\n` : 'migrating',
				)
			if (path === '/v1/health') {
				const uptime_s = Math.max(0, Math.floor((Date.now() - Date.parse(started_at)) / 1000))
				const checks = [{ name: 'gateway', ok: false, message: `migrating: ${text}` }]
				return json({ status: 'migrating', version, generation: 0, uptime_s, checks })
			}
			const message = `the gateway upgrades its home: ${text}; try again later`
			json({ statusCode: 503, error: 'Service Unavailable', code: 'unavailable', message })
		},
		upgrade: () => false,
	}
}
