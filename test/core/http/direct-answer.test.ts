/** Answers of built-in plugins do not go through hapi's sending: nobody may see a difference. */
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Server, ServerRoute } from '@hapi/hapi'
import { request } from 'undici'
import t from 'tap'
import type { Test } from 'tap'
import { Fault } from '../../../core/errors.ts'
import { answerDirectly } from '../../../core/http/direct-answer.ts'
import { makeServer } from '../../../core/http/server.ts'
import { openLog } from '../../../core/log/log.ts'
import { openRedactor } from '../../../core/redactor/redactor.ts'

const logger = openLog({ level: 'silent', format: 'json' })
const long = { items: Array.from({ length: 200 }, (_, n) => ({ n, text: 'ä €' })) }
const routes: ServerRoute[] = [
	{ method: 'GET', path: '/object', handler: () => ({ a: 1, text: 'ä € 𝄞' }) },
	{ method: 'GET', path: '/list', handler: () => [1, 2] },
	{ method: 'GET', path: '/long', handler: () => long },
	{ method: 'GET', path: '/limit/{n}', handler: ({ params }) => ['x'.repeat(Number(params.n) - 4)] },
	{ method: 'GET', path: '/text', handler: () => 'text' },
	{ method: 'GET', path: '/nothing', handler: () => null },
	{ method: 'GET', path: '/bytes', handler: () => Buffer.from('bytes') },
	{ method: 'GET', path: '/kept', handler: (_request, h) => h.response({ a: 1 }).etag('one') },
	{
		method: 'GET',
		path: '/dated',
		handler: (_request, h) => h.response({}).header('last-modified', 'Thu, 01 Jan 2026 00:00:00 GMT'),
	},
	{ method: 'GET', path: '/empty', handler: (_request, h) => h.response({}).code(204) },
	{ method: 'GET', path: '/cached', handler: (_request, h) => h.response({}).header('cache-control', 'max-age=5') },
	{ method: 'GET', path: '/typed', handler: (_request, h) => h.response({}).type('application/problem+json') },
	{ method: 'GET', path: '/varied', handler: (_request, h) => h.response(long).vary('origin') },
	{
		method: 'GET',
		path: '/many',
		handler: (_request, h) => h.response({}).header('x-a', '1').header('x-a', '2', { append: true }),
	},
	{
		method: 'GET',
		path: '/refused',
		handler: () => {
			throw new Fault('conflict', 'no')
		},
	},
	{ method: 'POST', path: '/things', handler: ({ payload }, h) => h.response({ payload }).created('/things/1') },
	{
		method: 'POST',
		path: '/unread',
		options: { payload: { parse: false, output: 'stream' } },
		handler: () => ({ unread: true }),
	},
]

/** Listening, with the answers that were sent directly, by path. */
async function serve(t: Test, isDirect: boolean): Promise<{ url: string; direct: string[] }> {
	const options = { log: logger, redactor: openRedactor(), checkResponses: true }
	const hapi: Server = makeServer('http://test.invalid', options)
	hapi.route(routes)
	answerDirectly(hapi, () => isDirect)
	const direct: string[] = []
	hapi.events.on('response', ({ response, path, method }) => {
		if (typeof response === 'symbol') direct.push(`${method} ${path}`)
	})
	await hapi.start()
	const listener = createServer((request, response) => void hapi.listener.emit('request', request, response))
	await once(listener.listen(0, '127.0.0.1'), 'listening')
	t.teardown(async () => {
		listener.close()
		listener.closeAllConnections()
		await hapi.stop()
	})
	return { url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`, direct }
}

void t.test('an answer is the same whoever sends it', async (t) => {
	const ours = await serve(t, true)
	const hapis = await serve(t, false)
	const ask = async (base: string, method: 'GET' | 'HEAD' | 'POST', path: string, encoding?: string) => {
		const body = method === 'POST' ? { body: '{"a":1}' } : {}
		const {
			statusCode,
			headers,
			body: answer,
		} = await request(base + path, {
			method,
			...body,
			headers: { 'content-type': 'application/json', ...(encoding && { 'accept-encoding': encoding }) },
		})
		delete headers.date
		return { statusCode, headers, body: Buffer.from(await answer.arrayBuffer()).toString('latin1') }
	}
	const gets = routes.flatMap(({ method, path }) => (method === 'GET' ? path.replace('/{n}', '/1023') : []))
	const cases = [...gets, '/limit/1024', '/elsewhere'].flatMap((path) => [
		['GET', path] as const,
		['HEAD', path] as const,
		['GET', path, 'gzip'] as const,
	])
	for (const [method, path, encoding] of [...cases, ['POST', '/things'] as const, ['POST', '/unread'] as const]) {
		const expected = await ask(hapis.url, method, path, encoding)
		t.strictSame(await ask(ours.url, method, path, encoding), expected, [method, path, encoding].join(' '))
	}
	t.strictSame(hapis.direct, [])
	const short = ['/object', '/list', '/limit/1023', '/cached', '/typed', '/many']
	t.strictSame(
		[...new Set(ours.direct)].toSorted(),
		[...short, '/long', '/limit/1024', '/varied']
			.map((path) => `get ${path}`)
			.concat('post /things')
			.toSorted(),
	)
	for (const path of ['/long', '/limit/1024', '/varied'])
		t.equal(ours.direct.filter((one) => one === `get ${path}`).length, 1, `${path} is compressed by hapi`)
})
