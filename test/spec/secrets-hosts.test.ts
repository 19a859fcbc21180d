/** A grant with hosts: the value is sent in HTTP requests to these hosts, and nowhere else. */
import t from 'tap'
import { startGateway } from '../support/gateway.ts'
import type { Answer, Reply } from '../support/gateway.ts'
import { add, callTool, servers, stdio, until } from '../support/mcp.ts'
import { startNotingServer } from '../support/mcp-web.ts'
import { assertError } from '../support/error-response.ts'
import { follow } from '../support/runs.ts'
import type { Followed } from '../support/runs.ts'
import { addSkill, programText } from '../support/skills.ts'

const VALUE = 'the-value-that-is-bound'

const gateway = await startGateway({ config: 'mcp: {allowed_hosts: [localhost, 127.0.0.1]}\n' })
t.teardown(() => gateway.stop())

function grant(agent_id: string, fields: object): Promise<Reply<Answer>> {
	return gateway.request('POST', '/v1/vault/grants', { body: { agent_id, ...fields } })
}

async function store(name: string): Promise<void> {
	await gateway.request('POST', '/v1/vault/secrets', { body: { name, value: `${VALUE} ${name}` } })
}

/** An agent that may use BOUND at the host `localhost` only, and FREE everywhere. */
async function agentWith(t: Parameters<typeof follow>[0], name: string): Promise<Followed> {
	const agent = await follow(t, gateway, name)
	const bound = await grant(name, { secret_id: 'BOUND', hosts: ['localhost'] })
	const free = await grant(name, { secret_id: 'FREE' })
	if (bound.status !== 201 || free.status !== 201) throw new Error(JSON.stringify([bound.body, free.body]))
	return agent
}
await store('BOUND')
await store('FREE')

void t.test('a grant returns its hosts, and omits the field if it has none', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const hosts = ['API.example.com', 'api.example.com:8443', '10.0.0.7', '[::1]:8080', 'localhost']
	const normalized = ['api.example.com', 'api.example.com:8443', '10.0.0.7', '[::1]:8080', 'localhost']
	const made = await grant('ada', { secret_id: 'BOUND', hosts })
	t.equal(made.status, 201)
	t.strictSame(made.body.hosts, normalized)
	const free = await grant('ada', { secret_id: 'FREE' })
	t.notOk('hosts' in free.body)
	t.strictSame((await gateway.request('GET', '/v1/vault/grants?agent_id=ada')).body, [made.body, free.body])
	t.strictSame((await ada.stream.waitFor('vault.granted')).payload.hosts, normalized)
})

void t.test('invalid hosts are rejected', async (t) => {
	await follow(t, gateway, 'wrong')
	for (const host of [
		'',
		'*',
		'*.example.com',
		'https://a.example',
		'a.example/x',
		'a b',
		'a@b',
		'a.example:0',
		'a:99999',
		7,
	]) {
		const reply = await grant('wrong', { secret_id: 'BOUND', hosts: [host] })
		assertError(t, reply, { status: 400, code: 'invalid_request', path: 'hosts.0' }, String(host))
	}
	const many = Array.from({ length: 33 }, (_, n) => `host-${n}.example`)
	for (const hosts of [[], many, ['a.example', 'A.example'], 'a.example', null])
		t.equal((await grant('wrong', { secret_id: 'BOUND', hosts })).status, 400, JSON.stringify(hosts))
	const both = await grant('wrong', { secret_id: 'BOUND', hosts: ['a.example'], reveal: true })
	assertError(t, both, { status: 400, code: 'invalid_request', path: 'hosts', message: /with reveal/ })
	t.strictSame((await gateway.request('GET', '/v1/vault/grants?agent_id=wrong')).body, [])
})

void t.test('vault.read returns the hosts with the handle', async (t) => {
	const bea = await agentWith(t, 'bea')
	const resultOf = async (name: string): Promise<Answer> => {
		const run_id = await bea.complete(`/tool vault.read {"name":"${name}"}`)
		return JSON.parse(String((await bea.waitFor(run_id, 'primitive.result')).payload.result))
	}
	t.match(await resultOf('BOUND'), {
		handle: '{{secret:BOUND}}',
		hosts: ['localhost'],
		use: /only in requests to localhost/,
	})
	t.notOk('hosts' in (await resultOf('FREE')))
})

void t.test('headers and the URL of an MCP server', async (t) => {
	const cleo = await agentWith(t, 'cleo')
	const web = await startNotingServer(t)
	const added = async (name: string, fields: object): Promise<Answer> =>
		add(cleo, { name, transport: 'http', ...fields })
	const headers = { X: 'a {{secret:BOUND}}' }
	t.equal((await added('good', { url: web.at('localhost'), headers })).status, 'connected')
	t.equal((await added('path', { url: web.at('localhost', '/{{secret:BOUND}}') })).status, 'connected')
	t.match(web.arrived[0]?.headers.x, VALUE)
	t.ok(web.arrived.some(({ url }) => url.includes(VALUE)))
	for (const [name, fields] of Object.entries({
		header: { url: web.at('127.0.0.1'), headers },
		whole: { url: web.at('127.0.0.1'), headers: { X: { secret: 'BOUND' } } },
		query: { url: web.at('127.0.0.1', '/mcp?key={{secret:BOUND}}') },
	})) {
		const { id } = await added(name, fields)
		const { last_error } = await until(gateway, 'cleo', id, ({ status }) => status === 'error')
		t.match(last_error.message, /restricts "BOUND" to localhost: it is not sent to 127\.0\.0\.1:/, name)
	}
	// The others may still open their streams.
	const sent = web.arrived.filter(({ headers }) => headers.host?.startsWith('127.0.0.1'))
	t.strictSame(sent, [], 'no request is sent')
	t.match((await cleo.stream.waitFor('vault.denied')).payload, { secret: 'BOUND', via: 'mcp:header', reason: 'hosts' })
	t.equal((await added('free', { url: web.at('127.0.0.1'), headers: { X: '{{secret:FREE}}' } })).status, 'connected')
})

void t.test('arguments of MCP calls, also after a redirect', async (t) => {
	const dora = await agentWith(t, 'dora')
	const [web, other] = [await startNotingServer(t), await startNotingServer(t)]
	await add(dora, { name: 'good', transport: 'http', url: web.at('localhost') })
	await add(dora, { name: 'bad', transport: 'http', url: other.at('127.0.0.1') })
	const echo = (server: string, secret: string): Promise<Answer> =>
		callTool(dora, `mcp__${server}__echo`, { text: `{{secret:${secret}}}` })
	const gotValue = (server: typeof web): boolean => server.arrived.some(({ text }) => text.includes(VALUE))

	t.match(await echo('bad', 'BOUND'), { code: 'vault_denied', message: /it is not sent to 127\.0\.0\.1:/ })
	t.notOk(gotValue(other))
	t.match(await echo('bad', 'FREE'), { event_type: 'mcp.result' })
	other.arrived.length = 0

	web.redirectCalls(other.at('127.0.0.1'))
	t.match(await echo('good', 'BOUND'), { event_type: 'mcp.failed', message: /Redirect to .* not followed/ })
	t.strictSame(
		other.arrived.filter(({ rpc }) => rpc === 'tools/call'),
		[],
	)
	t.ok(
		web.arrived.some(({ text }) => text.includes(`${VALUE} BOUND`)),
		'the granted host gets the value',
	)
})

void t.test('an MCP server on this machine never gets the value', async (t) => {
	const emma = await agentWith(t, 'emma')
	const { id } = await add(emma, { ...stdio('variable', servers.fixture), env: { TOKEN: { secret: 'BOUND' } } })
	const { last_error } = await until(gateway, 'emma', id, ({ status }) => status === 'error')
	t.match(last_error.message, /restricts "BOUND" to localhost: it is sent only over HTTP, and not to mcp:variable/)
	await add(emma, stdio('own', servers.fixture))
	const args = { text: '{{secret:BOUND}}' }
	t.match(await callTool(emma, 'mcp__own__echo', args), { code: 'vault_denied', message: /only over HTTP/ })
})

void t.test('the program of a skill gets the handle, never the value', async (t) => {
	const fay = await agentWith(t, 'fay')
	const head = `parameters: [{name: a, type: string}, {name: b, type: string}]
permissions: {secrets: [BOUND, FREE], primitives: [vault.read]}`
	const code = `const asked = await svc.secret('BOUND').catch((error) => error.code + ': ' + error.message)
const read = await svc.primitive('vault.read', { name: 'BOUND' })
return { a: args.a, b: args.b.length, asked, read: read.handle }`
	await addSkill(gateway, 'fay', programText('holder', code, head))
	const run_id = await fay.complete('/tool holder {"a":"x {{secret:BOUND}}","b":"{{secret:FREE}}"}')
	const { payload } = await fay.waitFor(run_id, 'skill.completed')
	t.match(JSON.parse(String(payload.result)), {
		a: 'x {{secret:BOUND}}',
		b: `${VALUE} FREE`.length,
		asked: /^vault_denied: .*only over HTTP, and not to skill:holder/,
		read: '{{secret:BOUND}}',
	})
})
