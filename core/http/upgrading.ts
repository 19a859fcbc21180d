/**
 * Answers requests while the home is upgraded and no plugin runs yet: the probes show the progress, everything else is refused
 * with 503. It shows nothing that needs a token.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { UpgradeProgress } from '../upgrade/progress.ts'

const MOST_RETRY_S = 60

/** As `Listeners.current`. */
export function upgrading(
	{ version, started_at }: { version: string; started_at: string },
	progress: () => UpgradeProgress,
) {
	return {
		request(_address: unknown, { url = '/' }: IncomingMessage, response: ServerResponse): void {
			// Not with `URL`, which throws for paths such as `//`.
			const [path, query] = url.split('?', 2)
			const { text, remaining_s } = progress()
			const retry = String(Math.min(MOST_RETRY_S, Math.max(1, remaining_s ?? 1)))
			const refuse = (body: string | object): void => {
				const [type, content] =
					typeof body === 'string' ? ['text/plain', body] : ['application/json', JSON.stringify(body)]
				response.writeHead(503, { 'content-type': `${type}; charset=utf-8`, 'retry-after': retry }).end(content)
			}

			if (path === '/healthz')
				return void response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end('ok')
			if (path === '/readyz')
				return refuse(
					new URLSearchParams(query).has('verbose') ? `[-]gateway migrating: ${text}\nmigrating\n` : 'migrating',
				)
			if (path === '/v1/health') {
				const uptime_s = Math.max(0, Math.floor((Date.now() - Date.parse(started_at)) / 1000))
				const checks = [{ name: 'gateway', ok: false, message: `migrating: ${text}` }]
				return refuse({ status: 'migrating', version, generation: 0, uptime_s, checks })
			}
			const message = `the gateway upgrades its home: ${text}; try again later`
			refuse({ statusCode: 503, error: 'Service Unavailable', code: 'unavailable', message })
		},
		upgrade: () => false,
	}
}
