/** To refer to a secret, or to approve a program that uses one, a caller needs vault:write; the agent needs a grant, too. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { addSecret, addToken } from '../support/add.ts'
import { markFormat } from '../support/format.ts'
import { makeHome, startGateway } from '../support/gateway.ts'
import type { Answer, Reply } from '../support/gateway.ts'
import { add, callTool, servers, stdio, until } from '../support/mcp.ts'
import { startNotingServer } from '../support/mcp-web.ts'
import { isOnCluster } from '../support/nats.ts'
import { assertError } from '../support/error-response.ts'
import { follow } from '../support/runs.ts'
import { installSkill, programText, skillText } from '../support/skills.ts'

const VALUE = 'the-value-that-must-not-leave'

const allowed = [process.execPath, servers.fixture]
const gateway = await startGateway({
	config: `mcp: ${JSON.stringify({ allowed_hosts: ['localhost'], allowed_commands: [['LEVEL=', ...allowed]] })}\n`,
})
t.teardown(() => gateway.stop())
const web = await startNotingServer(t)

const withoutVault = (await addToken(gateway, ['agents:write', 'runs:write'])).token
const withVault = (await addToken(gateway, ['agents:write', 'vault:write'])).token

const grant = (agent: string, name: string): Promise<void> => addSecret(gateway, agent, name, `${VALUE} ${name}`)

const http = (name: string, fields: object): object => ({
	name,
	transport: 'http',
	url: web.at('localhost'),
	...fields,
})
const references: [what: string, fields: object, place: RegExp][] = [
	[
		'a header',
		http('a', { headers: { X: 'Bearer {{secret:KEY}}' } }),
		/^headers\.X refers to a secret.*vault:write or \*/,
	],
	['a whole header', http('b', { headers: { X: { secret: 'KEY' } } }), /^headers\.X refers/],
	['the path', http('c', { url: web.at('localhost', '/{{secret:KEY}}') }), /^url refers/],
	['the query', http('d', { url: web.at('localhost', '/mcp?key={{secret:KEY}}') }), /^url refers/],
	['a variable', { ...stdio('e', servers.fixture), env: { LEVEL: 'a {{secret:KEY}}' } }, /^env\.LEVEL refers/],
	['a whole variable', { ...stdio('f', servers.fixture), env: { LEVEL: { secret: 'KEY' } } }, /^env\.LEVEL refers/],
]

void t.test('a reference in the settings of an MCP server requires vault:write', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	await grant('ada', 'KEY')
	for (const [what, body, message] of references) {
		const reply = await gateway.request('POST', '/v1/agents/ada/mcp', { token: withoutVault, body })
		assertError(t, reply, { status: 403, code: 'forbidden', message }, what)
	}
	t.strictSame((await ada.call('mcp')).body, [], 'no server is stored')
	t.strictSame(web.arrived, [], 'no request is sent')
	const { payload } = await ada.stream.waitFor('security.violation')
	t.match(payload, { reason: 'mcp_refused', message: /vault:write/ })

	const plain = await gateway.request('POST', '/v1/agents/ada/mcp', {
		token: withoutVault,
		body: http('plain', { headers: { X: 'blue' } }),
	})
	t.match(plain.body, { status: 'connected' }, 'a server without a reference needs agents:write only')
	for (const [what, body] of references) {
		const reply = await gateway.request('POST', '/v1/agents/ada/mcp', { token: withVault, body })
		t.equal(reply.status, 201, `${what}: ${JSON.stringify(reply.body)}`)
		await until(gateway, 'ada', reply.body.id, ({ status }: Answer) => status === 'connected')
	}
	const url = encodeURIComponent(`${VALUE} KEY`)
	const seen = web.arrived.filter(({ rpc }) => rpc === 'initialize')
	t.match(
		seen.map((one) => one.headers.x ?? one.url),
		['blue', `Bearer ${VALUE} KEY`, `${VALUE} KEY`, `/${url}`, `/mcp?key=${url}`],
	)
	const shown = JSON.stringify([(await ada.call('mcp')).body, ada.stream.events])
	t.notMatch(shown, VALUE)
})

void t.test('a secret value is rejected in a field that is stored unencrypted', async (t) => {
	const eva = await follow(t, gateway, 'eva')
	await grant('eva', 'PLAIN')
	const value = `${VALUE} PLAIN`
	const program = stdio('g', servers.fixture, `--key=${value}`)
	const inArguments = {
		status: 400,
		code: 'invalid_request',
		path: 'args',
		message: /^args contains .*\{\{secret:NAME\}\}/,
	}
	await eva.complete('/tool vault_read {"name":"PLAIN"}')
	assertError(t, await gateway.request('POST', '/v1/agents/eva/mcp', { body: program }), inArguments)
	const address = http('h', { url: web.at('localhost', `/mcp?key=${encodeURIComponent(value)}`) })
	const inAddress = { ...inArguments, path: 'url', message: /^url contains/ }
	assertError(t, await gateway.request('POST', '/v1/agents/eva/mcp', { body: address }), inAddress)
	t.strictSame((await eva.call('mcp')).body, [])
	const sealed = { ...stdio('i', servers.fixture), env: { LEVEL: value } }
	t.equal(
		(await gateway.request('POST', '/v1/agents/eva/mcp', { body: sealed })).status,
		201,
		'variables are encrypted',
	)
})

void t.test('a server that was added without vault:write gets no secrets in calls', async (t) => {
	const bea = await follow(t, gateway, 'bea')
	await grant('bea', 'ARGUMENT')
	const before = web.arrived.length
	const args = { text: 'a {{secret:ARGUMENT}} z' }
	for (const [name, token] of [
		['theirs', withoutVault],
		['ours', withVault],
	] as const) {
		const added = await gateway.request('POST', '/v1/agents/bea/mcp', { token, body: http(name, {}) })
		t.equal(added.body.status, 'connected')
	}
	t.match(await callTool(bea, 'mcp__theirs__echo', args), {
		event_type: 'mcp.failed',
		code: 'vault_denied',
		message: /"theirs".*without the scope vault:write/,
	})
	t.match((await bea.stream.waitFor('vault.denied')).payload, {
		secret: 'ARGUMENT',
		via: 'mcp:theirs',
		reason: 'server',
	})
	t.notMatch(JSON.stringify(web.arrived.slice(before)), VALUE)
	t.match(await callTool(bea, 'mcp__theirs__echo', { text: 'plain' }), { event_type: 'mcp.result', result: 'plain' })
	t.match(await callTool(bea, 'mcp__ours__echo', args), { event_type: 'mcp.result' })
	t.match(web.arrived.at(-1)?.text, `a ${VALUE} ARGUMENT z`)
})

void t.test('approving a program that gets secrets requires vault:write', async (t) => {
	await follow(t, gateway, 'cleo')
	const head = 'permissions: {secrets: [KEY], hosts: [evil.example]}'
	const program = await installSkill(gateway, 'cleo', programText('taker', 'return 1', head))
	const harmless = await installSkill(gateway, 'cleo', programText('harmless', 'return 1'))
	const text = await installSkill(gateway, 'cleo', skillText('text', 'Be kind.', head))
	const digestOf = async (id: string): Promise<string> =>
		(await gateway.request('GET', `/v1/agents/cleo/skills/${id}`)).body.digest
	const approve = async (id: string, token: string): Promise<Answer> =>
		gateway.request('POST', `/v1/agents/cleo/skills/${id}/approve`, { token, body: { digest: await digestOf(id) } })
	const message = /"taker" gets secrets \(KEY\).*vault:write or \*/
	assertError(t, await approve(program.id, withoutVault), { status: 403, code: 'forbidden', message }, 'by its digest')
	const approved_skills = [harmless.id, program.id]
	const patched = await gateway.request('PATCH', '/v1/agents/cleo', {
		token: withoutVault,
		body: { config: { approved_skills } },
	})
	assertError(t, patched, { status: 403, code: 'forbidden', message }, 'by the config')
	const listed = (await gateway.request('GET', '/v1/agents/cleo/skills')).body
	t.strictSame([...new Set(listed.map((one: Answer) => one.status))], ['quarantined'], 'no skill is approved')
	t.equal((await approve(harmless.id, withoutVault)).status, 200)
	t.equal((await approve(text.id, withoutVault)).status, 200, 'instructions get no secrets')
	t.equal((await approve(program.id, withVault)).status, 200)
})

void t.test('a local caller has every scope', async (t) => {
	const dora = await follow(t, gateway, 'dora')
	await grant('dora', 'LOCAL')
	const { status } = await add(dora, http('web', { headers: { X: { secret: 'LOCAL' } } }) as Record<string, unknown>)
	t.equal(status, 'connected')
})

/** Rewrites the records of servers as version 0.1.0 wrote them, without `secrets_allowed`. */
const older = `export default {
	name: 'older',
	needs: ['agents'],
	async start(ctx) {
		for await (const agent of ctx.use('agents').list())
			for await (const { key, value } of ctx.store.list(['agent:' + agent.uid, 'mcp', 'server'])) {
				const { secrets_allowed, ...record } = value
				await ctx.store.put(key, { ...record, trusted: record.name === 'trusted' })
			}
	},
}`

const skip = isOnCluster && 'version 0.1.0 has no clusters'
void t.test('a server of version 0.1.0 counts as added without vault:write, unless with *', { skip }, async (t) => {
	const files = { 'plugins/older/index.js': older }
	const config = 'mcp: {allowed_hosts: [localhost]}\n'
	const home = makeHome({ config, files }, t)
	const before = await startGateway({ home })
	const server = await startNotingServer(t)
	const post = (path: string, body: object): Promise<Reply<Answer>> => before.request('POST', path, { body })
	await post('/v1/agents', { name: 'ada' })
	await addSecret(before, 'ada', 'KEY', VALUE)
	for (const [name, headers] of Object.entries({
		trusted: { X: '{{secret:KEY}}' },
		other: { X: '{{secret:KEY}}' },
		bare: {},
	}))
		await post('/v1/agents/ada/mcp', { name, transport: 'http', url: server.at('localhost'), headers })
	await before.stop()
	writeFileSync(join(home, 'config/gateway.yaml'), `${config}plugins: {older: true}\n`)
	await (await startGateway({ home })).stop()
	writeFileSync(join(home, 'config/gateway.yaml'), config)
	await markFormat(join(home, 'data'), 1)

	const after = await startGateway({ home })
	t.teardown(() => after.stop())
	const ada = await follow(t, after, 'ada')
	const ids = Object.fromEntries((await ada.call('mcp')).body.map(({ name, id }: Answer) => [name, id]))
	const other = await until(after, 'ada', ids.other, ({ status }) => status === 'error')
	t.match(
		other.last_error.message,
		/refer to secrets \(KEY\).*without the scope vault:write; remove it, and add it again/,
	)
	await until(after, 'ada', ids.trusted, ({ status }) => status === 'connected')
	await until(after, 'ada', ids.bare, ({ status }) => status === 'connected')
	const args = { text: '{{secret:KEY}}' }
	t.match(await callTool(ada, 'mcp__bare__echo', args), { code: 'vault_denied', message: /add it again/ })
	t.match(await callTool(ada, 'mcp__trusted__echo', args), { event_type: 'mcp.result' })
})
