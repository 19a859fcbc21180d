/** The MCP server resource and its rows in the spec's table "MCP servers", over HTTP. */
import t from 'tap'
import { addToken } from '../support/add.ts'
import { startGateway } from '../support/gateway.ts'
import type { Answer, Reply, RequestOptions } from '../support/gateway.ts'
import { closedPort } from '../support/free-ports.ts'
import { add, isRunning, servers, startEverything, stdio, until } from '../support/mcp.ts'
import { assertError } from '../support/error-response.ts'
import { follow } from '../support/runs.ts'

const allowed = [process.execPath, servers.fixture, '--listed']
const gateway = await startGateway({
	config: `mcp: ${JSON.stringify({
		allowed_commands: [allowed, ['LEVEL=', 'TOKEN=', ...allowed, '--with-env']],
		allowed_hosts: ['localhost'],
		max_per_agent: 3,
	})}\n`,
})
const { url } = await startEverything(t, 'streamableHttp')
t.teardown(() => gateway.stop())

function call(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<Reply<Answer>> {
	return gateway.request(method, path, { ...options, ...(body !== undefined && { body }) })
}

void t.test('a stdio server is added, listed, read and removed', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const added = await add(ada, stdio('own', servers.fixture))
	const { id, ...rest } = added
	t.match(id, /^[0-9a-f-]{36}$/)
	t.strictSame(rest, { name: 'own', transport: 'stdio', status: 'connected' })
	t.strictSame((await ada.call('mcp')).body, [added])

	const { status, body } = await ada.call(`mcp/${id}`)
	t.equal(status, 200)
	t.match(body, {
		...added,
		command: process.execPath,
		args: [servers.fixture],
		env: {},
		status_detail: 'connected by stdio',
		last_error: null,
		failures: 0,
		server: { name: 'fixture', version: '1.0.0' },
		protocol_version: '2025-11-25',
		connected_at: String,
		stderr: 'ready to serve\n',
		not_offered: [],
	})
	const echo = body.tools.find((tool: Answer) => tool.name === 'echo')
	t.match(echo, { tool: 'mcp__own__echo', description: 'The tool echo.', held: false, digest: /^[0-9a-f]{64}$/ })
	t.strictSame(echo.input_schema, { type: 'object', properties: {} })
	t.strictSame(echo.annotations, { readOnlyHint: true })

	const removed = await call('DELETE', `/v1/agents/ada/mcp/${id}`)
	t.equal(removed.status, 204)
	t.equal(removed.body, '')
	t.notOk(isRunning(body.pid), 'its process has ended before the response')
	t.strictSame((await ada.call('mcp')).body, [])
	for (const [method, path] of [
		['GET', ''],
		['DELETE', ''],
		['PATCH', ''],
		['POST', '/restart'],
		['POST', '/accept'],
	]) {
		const reply = await call(
			String(method),
			`/v1/agents/ada/mcp/${id}${path}`,
			method === 'PATCH' ? { enabled: true } : undefined,
		)
		assertError(t, reply, { status: 404, code: 'not_found', message: /no MCP server/ }, `${method} ${path}`)
	}
	await ada.stream.waitFor('mcp.removed')
	t.strictSame(
		ada.stream.events.map((event) => event.event_type),
		['mcp.added', 'mcp.connected', 'mcp.disconnected', 'mcp.removed'],
	)
	t.match(ada.stream.events[0]?.payload, {
		server: 'own',
		mcp_id: id,
		command: process.execPath,
		args: [servers.fixture],
	})
})

void t.test('a server at a URL is added', async (t) => {
	const bea = await follow(t, gateway, 'bea')
	const added = await add(bea, { name: 'web', transport: 'sse', url })
	t.strictSame({ ...added, id: '' }, { id: '', name: 'web', transport: 'sse', status: 'connected' })
	const { body } = await bea.call(`mcp/${added.id}`)
	t.match(body, { url, headers: {}, pid: null, stderr: '' })
	t.notOk('command' in body)
})

void t.test('an invalid server is refused', async (t) => {
	await follow(t, gateway, 'cleo')
	const valid = stdio('own', servers.fixture)
	const web = { name: 'web', transport: 'sse', url: 'http://127.0.0.1:9/mcp' }
	const invalid: [body: unknown, path: string, message?: RegExp][] = [
		[{}, 'name'],
		[{ ...valid, name: '-own' }, 'name', /begin with a letter/],
		[{ ...valid, name: 'a b' }, 'name'],
		[{ ...valid, name: 'a__b' }, 'name', /single _/],
		[{ ...valid, name: 'a_' }, 'name'],
		[{ ...valid, name: 'x'.repeat(65) }, 'name'],
		[{ name: 'x', command: 'y' }, 'transport'],
		[{ ...valid, transport: 'telepathy' }, 'transport', /stdio, sse, http/],
		[{ ...valid, url: 'http://127.0.0.1/' }, 'url', /url goes with sse or http/],
		[{ ...valid, headers: {} }, 'headers'],
		[{ name: 'x', transport: 'stdio' }, 'command', /transport stdio needs command/],
		[{ name: 'x', transport: 'http', command: 'y' }, 'url', /transport http needs url.*command goes with stdio/],
		[{ ...web, colour: 'red' }, 'colour', /colour is not allowed/],
		[{ ...valid, command: '' }, 'command'],
		[{ ...valid, command: 'bin/server' }, 'command', /PATH, or an absolute path/],
		[{ ...valid, command: 'no\0de' }, 'command'],
		[{ ...valid, args: 'run' }, 'args'],
		[{ ...valid, args: ['a\0b'] }, 'args.0'],
		[{ ...valid, args: Array(65).fill('a') }, 'args'],
		[{ ...valid, env: { 'A=B': 'c' } }, 'env.A=B'],
		[{ ...valid, env: { A: 1 } }, 'env.A'],
		[{ ...valid, env: { A: { secret: 'a b' } } }, 'env.A.secret'],
		[{ ...valid, env: { NODE_OPTIONS: '--inspect' } }, 'env.NODE_OPTIONS', /run code other/],
		[{ ...valid, env: { ld_preload: 'x.so' } }, 'env.ld_preload'],
		[{ ...valid, env: { PYTHONSTARTUP: 'x.py' } }, 'env.PYTHONSTARTUP'],
		[{ ...valid, env: { npm_config_registry: 'x' } }, 'env.npm_config_registry'],
		[{ ...valid, extra: true }, 'extra'],
		[{ ...web, command: 'node' }, 'command'],
		[{ ...web, url: 'ftp://example.com' }, 'url', /http:\/\/ or https:\/\//],
		[{ ...web, url: 'example.com/mcp' }, 'url'],
		[{ ...web, url: 'http://ann:pw@example.com/' }, 'url', /headers/],
		[{ ...web, headers: { 'Mcp-Session-Id': 'mine' } }, 'headers.Mcp-Session-Id'],
		[{ ...web, headers: { Host: 'other' } }, 'headers.Host'],
		[{ ...web, headers: { 'a b': 'c' } }, 'headers.a b'],
		[{ ...web, headers: { A: 'b\r\nC: d' } }, 'headers.A'],
	]
	for (const [body, path, message] of invalid) {
		const reply = await call('POST', '/v1/agents/cleo/mcp', body)
		assertError(
			t,
			reply,
			{ status: 400, code: 'invalid_request', path, ...(message && { message }) },
			JSON.stringify(body),
		)
	}
	assertError(t, await call('POST', '/v1/agents/cleo/mcp', { ...web, url: 'http://169.254.169.254/' }), {
		status: 400,
		code: 'address_refused',
	})
	assertError(t, await call('POST', '/v1/agents/nobody/mcp', valid), {
		status: 404,
		code: 'not_found',
		message: /"nobody"/,
	})
	assertError(t, await call('GET', '/v1/agents/nobody/mcp'), { status: 404, code: 'not_found' })
	t.strictSame((await call('GET', '/v1/agents/cleo/mcp')).body, [])
})

void t.test('concurrent requests add one server per name, and at most mcp.max_per_agent', async (t) => {
	const dora = await follow(t, gateway, 'dora')
	const same = await Promise.all(Array.from({ length: 5 }, () => dora.call('mcp', stdio('own', servers.fixture))))
	t.equal(same.filter((reply) => reply.status === 201).length, 1)
	for (const reply of same.filter((one) => one.status !== 201)) {
		assertError(t, reply, { status: 409, code: 'already_exists', message: /already has an MCP server "own"/ })
	}
	const more = await Promise.all(['a', 'b', 'c', 'd'].map((name) => dora.call('mcp', stdio(name, servers.fixture))))
	t.equal(more.filter((reply) => reply.status === 201).length, 2)
	const full = more.find((one) => one.status !== 201)
	assertError(t, full as Reply<Answer>, { status: 409, code: 'conflict', message: /mcp\.max_per_agent/ })

	const [first] = (await dora.call('mcp')).body
	await call('DELETE', `/v1/agents/dora/mcp/${first.id}`)
	t.equal((await dora.call('mcp', stdio(first.name, servers.fixture))).status, 201, 'the name is free again')
})

void t.test('each route requires its scope', async (t) => {
	const emma = await follow(t, gateway, 'emma')
	const { id } = await add(emma, stdio('own', servers.fixture))
	const { token: reader } = await addToken(gateway, ['agents:read'])
	const { token: writer } = await addToken(gateway, ['agents:write'])
	const path = '/v1/agents/emma/mcp'
	for (const route of [path, `${path}/${id}`]) {
		t.equal((await call('GET', route, undefined, { token: reader })).status, 200)
		assertError(t, await call('GET', route, undefined, { token: writer }), {
			status: 403,
			code: 'forbidden',
			message: /agents:read/,
		})
	}
	const writes: [string, string, unknown?][] = [
		['POST', path, stdio('x', servers.fixture)],
		['PATCH', `${path}/${id}`, { enabled: false }],
		['POST', `${path}/${id}/restart`],
		['POST', `${path}/${id}/accept`],
		['DELETE', `${path}/${id}`],
	]
	for (const [method, route, body] of writes) {
		const reply = await call(method, route, body, { token: reader })
		assertError(t, reply, { status: 403, code: 'forbidden', message: /agents:write/ }, `${method} ${route}`)
	}
	t.equal((await call('DELETE', `${path}/${id}`, undefined, { token: writer })).status, 204)
})

void t.test('a caller without the scope * can start only listed command lines', async (t) => {
	const fay = await follow(t, gateway, 'fay')
	const { token } = await addToken(gateway, ['agents:write', 'agents:read'])
	const post = (body: object) => call('POST', '/v1/agents/fay/mcp', body, { token })
	const listed = stdio('listed', servers.fixture, '--listed')
	const refusals: [object, RegExp][] = [
		[stdio('own', servers.fixture), /mcp\.allowed_commands/],
		[stdio('own', servers.fixture, '--listed', 'more'), /mcp\.allowed_commands/],
		[{ ...listed, command: 'node' }, /mcp\.allowed_commands/],
		[{ ...listed, env: { TOKEN: 'x' } }, /setting env/],
		[{ ...stdio('own', servers.fixture, '--listed', '--with-env'), env: { PATH: '/tmp' } }, /setting env/],
	]
	for (const [at, [body, message]] of refusals.entries()) {
		assertError(t, await post(body), { status: 403, code: 'forbidden', message }, JSON.stringify(body))
		const { payload } = await fay.stream.waitFor('security.violation', at + 1)
		t.match(payload, { reason: 'mcp_refused', message, transport: 'stdio' })
	}
	const asCaller = {
		call: (path: string, body?: unknown) => call(body ? 'POST' : 'GET', `/v1/agents/fay/${path}`, body, { token }),
	}
	t.match(await add(asCaller, listed), { status: 'connected' })
	const withEnv = { ...stdio('with-env', servers.fixture, '--listed', '--with-env'), env: { TOKEN: 'abc' } }
	t.match(await add(asCaller, withEnv), { status: 'connected' })
})

void t.test('a caller without the scope * can use only public addresses and listed hosts', async (t) => {
	const gil = await follow(t, gateway, 'gil')
	const { token } = await addToken(gateway, ['agents:write'])
	const post = (address: string) =>
		call('POST', '/v1/agents/gil/mcp', { name: 'web', transport: 'http', url: address }, { token })
	for (const address of [url, url.replace('127.0.0.1', '[::1]'), 'http://10.0.0.1/mcp', 'http://2130706433/']) {
		assertError(t, await post(address), { status: 403, code: 'forbidden', message: /mcp\.allowed_hosts/ }, address)
	}
	t.equal((await gil.stream.waitFor('security.violation', 4)).payload.reason, 'mcp_refused')
	const metadata = await post('http://169.254.169.254/latest/meta-data/')
	assertError(t, metadata, { status: 400, code: 'address_refused' }, 'refused for every caller')
	const local = await post(url.replace('127.0.0.1', 'localhost'))
	t.equal(local.status, 201)
	await until(gateway, 'gil', local.body.id, ({ status }) => status === 'connected')
	t.pass('the operator has listed localhost')
})

void t.test('a server is switched off and on, and restarted', async (t) => {
	const hal = await follow(t, gateway, 'hal')
	const { id } = await add(hal, stdio('own', servers.fixture))
	const path = `/v1/agents/hal/mcp/${id}`
	const before = (await call('GET', path)).body.pid
	const restarted = await call('POST', `${path}/restart`)
	t.equal(restarted.status, 200)
	const isConnected = ({ status }: Answer): boolean => status === 'connected'
	const second = (await until(gateway, 'hal', id, isConnected)).pid
	t.not(second, before)
	t.notOk(isRunning(before))

	const off = await call('PATCH', path, { enabled: false })
	t.strictSame([off.status, off.body.status], [200, 'disabled'])
	t.notOk(isRunning(second))
	t.match((await call('GET', path)).body, { pid: null, connected_at: null, status_detail: /switched off/ })
	assertError(t, await call('POST', `${path}/restart`), { status: 409, code: 'conflict', message: /enabled: true/ })
	t.equal((await call('PATCH', path, { enabled: true })).status, 200)
	await until(gateway, 'hal', id, isConnected)
	assertError(t, await call('PATCH', path, {}), { status: 400, code: 'invalid_request', path: 'enabled' })
})

void t.test('a server that cannot be connected shows the reason', async (t) => {
	const ida = await follow(t, gateway, 'ida')
	const missing = await add(ida, { name: 'missing', transport: 'stdio', command: 'no-such-program-anywhere' })
	t.match(missing, { status: 'error', status_detail: /"no-such-program-anywhere" cannot be started/ })
	const { body } = await ida.call(`mcp/${missing.id}`)
	t.match(body.last_error.message, /"no-such-program-anywhere" cannot be started: there is no such program/)
	const closed = await add(ida, {
		name: 'closed',
		transport: 'http',
		url: `http://127.0.0.1:${await closedPort(t)}/mcp`,
	})
	t.equal(closed.status, 'reconnecting')
	t.match((await ida.call(`mcp/${closed.id}`)).body.last_error.message, /nothing answers at its port \(ECONNREFUSED\)/)
	const broken = await add(ida, stdio('broken', servers.fixture, '--exit'))
	const shown = await until(gateway, 'ida', broken.id, ({ failures }) => failures > 0)
	t.match(shown.last_error.message, /exit code 3.*broken on purpose/)
})
