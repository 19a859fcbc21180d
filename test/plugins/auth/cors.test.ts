/** Pages of listed origins: preflights of a browser, and what it permits the page to read. */
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { openStream } from '../../support/sse.ts'

const APP = 'https://app.example.com'
const gateway = await startGateway({
	config: `server: {cors_origins: ['HTTPS://App.Example.com/', 'http://localhost:5173']}\nplugins: {mcp-server: true}\n`,
})
t.teardown(() => gateway.stop())
const { body: made } = await gateway.request('POST', '/v1/auth/tokens', { body: { scopes: ['*'] } })
const { token } = made

const preflight = (origin: string, headers: Record<string, string> = {}) =>
	gateway.request('OPTIONS', '/v1/agents/ada/runs', {
		headers: {
			origin,
			'access-control-request-method': 'POST',
			'access-control-request-headers': 'authorization,content-type,x-stainless-os',
			...headers,
		},
	})

void t.test('a preflight of a listed origin is granted without a token', async (t) => {
	const { status, headers } = await preflight(APP, { 'access-control-request-private-network': 'true' })
	t.equal(status, 204)
	t.match(Object.fromEntries(headers), {
		'access-control-allow-origin': APP,
		'access-control-allow-methods': /POST.*PATCH.*DELETE/,
		'access-control-allow-headers': 'authorization,content-type,x-stainless-os',
		'access-control-allow-private-network': 'true',
		vary: /origin/,
	})
	t.equal(headers.get('access-control-allow-credentials'), null, 'cookies are not used')
	const odd = await preflight(APP, { 'access-control-request-headers': 'no name' })
	t.equal(odd.headers.get('access-control-allow-headers'), null)
})

void t.test('the setting does not change responses to any other origin', async (t) => {
	for (const origin of ['https://evil.example', 'null', `${APP}.evil.example`, 'http://app.example.com']) {
		const { status, headers } = await preflight(origin)
		t.equal(status, 404)
		t.equal(headers.get('access-control-allow-origin'), null, origin)
	}
	const plain = await gateway.request('GET', '/v1/agents', { headers: { origin: 'https://evil.example' } })
	t.equal(plain.status, 401)
	t.match([plain.headers.get('access-control-allow-origin'), plain.headers.get('vary')], [null, /origin/])
})

void t.test('a page of a listed origin needs a token, and can read responses and errors', async (t) => {
	for (const origin of [APP, 'http://localhost:5173', gateway.url]) {
		const without = await gateway.request('GET', '/v1/agents', { headers: { origin, 'sec-fetch-site': 'cross-site' } })
		t.equal(without.status, 401, origin)
	}
	const refused = await gateway.request('GET', '/v1/agents', { headers: { origin: APP } })
	t.match([refused.status, refused.headers.get('access-control-allow-origin')], [401, APP])
	t.match(refused.body.message, /does not count as local, since its Origin is listed in server\.cors_origins/)
	const { status, headers } = await gateway.request('GET', '/v1/agents', { token, headers: { origin: APP } })
	t.equal(status, 200)
	t.equal(headers.get('access-control-allow-origin'), APP)
	const exposed = (headers.get('access-control-expose-headers') ?? '').split(', ')
	const read = [
		'x-request-id',
		'retry-after',
		'location',
		'x-svc-run-id',
		'x-svc-ignored',
		'x-svc-embedder',
		'mcp-session-id',
	]
	// Without `x-should-retry`, OpenAI's library in a page repeats the request of a failed run.
	for (const name of [...read, 'x-should-retry']) t.ok(exposed.includes(name), name)
	const missing = await gateway.request('GET', '/v1/nothing', { token, headers: { origin: APP } })
	t.match([missing.status, missing.headers.get('access-control-allow-origin')], [404, APP])
})

void t.test('a listed origin can use the MCP server', async (t) => {
	const body = {
		jsonrpc: '2.0',
		id: 1,
		method: 'initialize',
		params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'page', version: '1' } },
	}
	const open = (origin: string) =>
		gateway.request('POST', '/mcp', {
			token,
			body,
			headers: { origin, accept: 'application/json, text/event-stream' },
		})
	const reply = await open(APP)
	t.match([reply.status, reply.headers.get('access-control-allow-origin')], [200, APP])
	t.equal((await open('https://evil.example')).status, 403)
})

void t.test('a listed origin can read an event stream', async (t) => {
	const stream = await openStream(gateway.url, { token, headers: { origin: APP } })
	t.equal(stream.headers['access-control-allow-origin'], APP)
	t.match(stream.headers['access-control-expose-headers'], /x-request-id/)
	await gateway.request('POST', '/v1/agents', { token, body: { name: 'ada' } })
	t.ok(await stream.waitFor('agent.created'))
	stream.close()
})
