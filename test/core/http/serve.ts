import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Lifecycle, Request, Server, ServerRoute } from '@hapi/hapi'
import type { Test } from 'tap'
import { answerDirectly } from '../../../core/http/direct-answer.ts'
import { makeServer } from '../../../core/http/server.ts'
import { openLog } from '../../../core/log/log.ts'
import { openRedactor } from '../../../core/redactor/redactor.ts'

/**
 * A listening server, of built-in plugins alone or not: then hapi does all. `seen` is called before
 * hapi reads a body.
 */
export async function serve(
	t: Test,
	routes: ServerRoute[],
	onlyBuiltIn: boolean,
	seen: (request: Request) => void = () => {},
): Promise<{ hapi: Server; port: number }> {
	const hapi = makeServer('http://test.invalid', {
		log: openLog({ level: 'silent', format: 'json' }),
		redactor: openRedactor(),
		checkResponses: true,
		onlyBuiltIn,
	})
	const authenticate: Lifecycle.Method = (request, h) => {
		seen(request)
		return h.authenticated({ credentials: {} })
	}
	hapi.auth.scheme('seen', () => ({ authenticate }))
	hapi.auth.strategy('seen', 'seen')
	hapi.auth.default('seen')
	hapi.route(routes)
	if (onlyBuiltIn) answerDirectly(hapi)
	await hapi.start()
	const listener = createServer((request, response) => void hapi.listener.emit('request', request, response))
	await once(listener.listen(0, '127.0.0.1'), 'listening')
	t.teardown(async () => {
		listener.close()
		listener.closeAllConnections()
		await hapi.stop()
	})
	return { hapi, port: (listener.address() as AddressInfo).port }
}
