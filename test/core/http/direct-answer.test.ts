/** Responses that are sent without hapi are the same for clients. */
import net from 'node:net'
import { text } from 'node:stream/consumers'
import type { Server, ServerRoute } from '@hapi/hapi'
import { request } from 'undici'
import t from 'tap'
import { Fault } from '../../../core/errors.ts'
import { Listeners } from '../../../core/http/listeners.ts'
import { openLog } from '../../../core/log/log.ts'
import { startGateway } from '../../support/gateway.ts'
import { serve } from './serve.ts'

const items = { items: Array.from({ length: 200 }, (_, n) => ({ n, text: 'ä €' })) }
const routes: ServerRoute[] = [
	{ method: 'GET', path: '/object', handler: () => ({ a: 1, text: 'ä € 𝄞' }) },
	{ method: 'GET', path: '/list', handler: () => [1, 2] },
	{ method: 'GET', path: '/long', handler: () => items },
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
	{ method: 'GET', path: '/retyped', handler: (_request, h) => h.response({}).type('application/json') },
	{ method: 'GET', path: '/absent', handler: (_request, h) => h.response({}).header('x-a', undefined as never) },
	{ method: 'GET', path: '/varied', handler: (_request, h) => h.response(items).vary('origin') },
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

/** Records the requests that were answered without hapi. */
function directAnswersOf(hapi: Server): string[] {
	const found: string[] = []
	hapi.events.on('response', ({ response, path, method }) => {
		if (typeof response === 'symbol') found.push(`${method} ${path}`)
	})
	return found
}

void t.test('a response is the same with and without hapi', async (t) => {
	const ours = await serve(t, routes, { onlyBuiltIn: true })
	const hapis = await serve(t, routes, { onlyBuiltIn: false })
	const direct = { ours: directAnswersOf(ours.hapi), hapis: directAnswersOf(hapis.hapi) }
	const ask = async (port: number, method: 'GET' | 'HEAD' | 'POST', path: string, encoding?: string) => {
		const body = method === 'POST' ? { body: '{"a":1}' } : {}
		const answer = await request(`http://127.0.0.1:${port}${path}`, {
			method,
			...body,
			headers: { 'content-type': 'application/json', ...(encoding && { 'accept-encoding': encoding }) },
		})
		const { statusCode, headers } = answer
		delete headers.date
		return { statusCode, headers, body: Buffer.from(await answer.body.arrayBuffer()).toString('latin1') }
	}
	const gets = routes.flatMap(({ method, path }) => (method === 'GET' ? path.replace('/{n}', '/1023') : []))
	const cases = [...gets, '/limit/1024', '/elsewhere'].flatMap((path) => [
		['GET', path] as const,
		['HEAD', path] as const,
		['GET', path, 'gzip'] as const,
	])
	for (const [method, path, encoding] of [...cases, ['POST', '/things'] as const, ['POST', '/unread'] as const]) {
		const expected = await ask(hapis.port, method, path, encoding)
		t.strictSame(await ask(ours.port, method, path, encoding), expected, [method, path, encoding].join(' '))
	}
	t.strictSame(direct.hapis, [])
	const long = ['/long', '/limit/1024', '/varied']
	const short = ['/object', '/list', '/limit/1023', '/cached', '/absent', '/many']
	t.strictSame(
		[...new Set(direct.ours)].toSorted(),
		[...[...short, ...long].map((path) => `get ${path}`), 'post /things'].toSorted(),
	)
	for (const path of long)
		t.equal(direct.ours.filter((one) => one === `get ${path}`).length, 1, `${path} is compressed by hapi`)
})

void t.test('all pipelined requests are answered after the client has closed its side', async (t) => {
	const { hapi } = await serve(t, routes, { onlyBuiltIn: true })
	const listeners = new Listeners(openLog({ level: 'silent', format: 'json' }))
	listeners.current = {
		request: (_address, request, response) => void hapi.listener.emit('request', request, response),
		upgrade: () => false,
	}
	const sockets = await listeners.open({ main: { host: '127.0.0.1', port: 0 } })
	sockets.take()
	t.teardown(() => listeners.close(0))
	const socket = net.connect(Number(new URL(listeners.url('main') ?? '').port), '127.0.0.1')
	socket.end(['1010', '1011', '1012'].map((n) => `GET /limit/${n} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''))
	const lengths = [...(await text(socket)).matchAll(/^content-length: (\d+)/gim)].map(([, length]) => length)
	t.strictSame(lengths, ['1010', '1011', '1012'])
})

void t.test('a third-party plugin can use all of hapi on every request', async (t) => {
	const watcher = `export default { name: 'watcher', http(server) {
		const seen = []
		server.events.on('response', ({ path, response, info }) => seen.push([path, response.statusCode, info.responded > 0]))
		server.ext('onCredentials', ({ payload }, h) => (seen.push(payload), h.continue))
		server.ext('onPreResponse', (request, h) => (h.state('seen', 'yes'), h.continue))
		server.route({ method: 'GET', path: '/seen', handler: () => seen })
	} }`
	const gateway = await startGateway({
		config: 'plugins:\n  watcher: {}\n',
		files: { 'plugins/watcher/index.js': watcher },
	})
	t.teardown(() => gateway.stop())
	const made = await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	t.equal(made.status, 201)
	t.match(made.headers.get('set-cookie'), /^seen=yes/)
	const { body } = await gateway.request('GET', '/seen')
	t.strictSame(body, [{ name: 'ada' }, ['/v1/agents', 201, true], null])
})
