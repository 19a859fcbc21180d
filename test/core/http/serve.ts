import { createServer } from 'node:http'
import type { Lifecycle, Request, Server, ServerRoute } from '@hapi/hapi'
import type { Test } from 'tap'
import { answerDirectly } from '../../../core/http/direct-answer.ts'
import { makeServer } from '../../../core/http/server.ts'
import { openLog } from '../../../core/log/log.ts'
import { openRedactor } from '../../../core/redactor/redactor.ts'
import { listenOnLoopback } from '../../support/loopback.ts'

export interface ServeOptions {
	/** False: hapi reads and answers everything, as for third-party plugins. */
	onlyBuiltIn: boolean
	/** Called before hapi reads the body. */
	onAuth?(request: Request): void
}

/** A listening server with these routes. */
export async function serve(
	t: Test,
	routes: ServerRoute[],
	{ onlyBuiltIn, onAuth }: ServeOptions,
): Promise<{ hapi: Server; port: number }> {
	const hapi = makeServer('http://test.invalid', {
		log: openLog({ level: 'silent', format: 'json' }),
		redactor: openRedactor(),
		checkResponses: true,
		onlyBuiltIn,
	})
	const authenticate: Lifecycle.Method = (request, h) => {
		onAuth?.(request)
		return h.authenticated({ credentials: {} })
	}
	hapi.auth.scheme('test', () => ({ authenticate }))
	hapi.auth.strategy('test', 'test')
	hapi.auth.default('test')
	hapi.route(routes)
	if (onlyBuiltIn) answerDirectly(hapi)
	await hapi.start()
	const listener = createServer((request, response) => void hapi.listener.emit('request', request, response))
	const { port, stop } = await listenOnLoopback(listener)
	t.teardown(async () => {
		await stop()
		await hapi.stop()
	})
	return { hapi, port }
}
