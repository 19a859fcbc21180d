/**
 * The health endpoints of a waiting gateway. It is alive on its own, and ready if the working gateway is: then it can forward
 * requests, and a load balancer may send it some.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { REQUEST_ID } from '../../../core/http/request-id.ts'
import type { Health } from '../../../core/status.ts'
import { jsonIn } from '../../../core/util/json-in.ts'
import type { ProbeAnswer, Forwarder, Route } from './forward.ts'

const ROLE = 'waiting: requests are forwarded to the working gateway'
const NO_GATEWAY = 'waiting: no gateway works on the data of the cluster at the moment, or it cannot be reached'

/** Returns false for any other request. */
export function answerProbe(
	request: IncomingMessage,
	response: ServerResponse,
	route: () => Route | null,
	forwarder: Forwarder,
): boolean {
	const { url = '/', method } = request
	// Not by URL, which throws for paths such as `//`.
	const [path, query] = url.split('?', 2)
	if (method !== 'GET' && method !== 'HEAD') return false
	if (path === '/healthz') {
		response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end('ok')
		return true
	}
	if (path !== '/readyz' && path !== '/v1/health') return false
	const isVerbose = path === '/readyz' && new URLSearchParams(query).has('verbose')
	const ask = async (): Promise<void> => {
		const to = route()
		const asked = to && (await forwarder.ask(to, request, String(response.getHeader(REQUEST_ID))).catch(() => null))
		const { status, headers, body } = asked ?? unavailable(path === '/readyz', isVerbose)
		const text = asked ? withRole(asked, path === '/readyz') : body
		const retry = headers['retry-after'] ?? (status === 503 ? '2' : undefined)
		response
			.writeHead(status, {
				'content-type': headers['content-type'] ?? 'text/plain; charset=utf-8',
				...(retry !== undefined && { 'retry-after': retry }),
			})
			.end(text)
	}
	ask().catch(() => response.destroy())
	return true
}

/** The answer of the working gateway, with its role replaced by that of this one. */
function withRole({ body }: ProbeAnswer, isText: boolean): string {
	if (isText) return body.replace(/^\[\+\]role .*$/m, `[+]role ${ROLE}`)
	const health = jsonIn(body) as Partial<Health> | undefined
	if (!Array.isArray(health?.checks)) return body // an error
	const checks = health.checks.map((one) => (one?.name === 'role' ? { ...one, message: ROLE } : one))
	return JSON.stringify({ ...health, checks })
}

function unavailable(isText: boolean, isVerbose: boolean): ProbeAnswer {
	if (isText) return { status: 503, headers: {}, body: isVerbose ? `[-]role ${NO_GATEWAY}\nwaiting\n` : 'waiting' }
	const body = { statusCode: 503, error: 'Service Unavailable', code: 'unavailable', message: NO_GATEWAY }
	return { status: 503, headers: { 'content-type': 'application/json; charset=utf-8' }, body: JSON.stringify(body) }
}
