/** The fields that connect lines of the log with their request or run. */
import http from 'node:http'
import { connect } from 'node:net'
import { rmSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { logFields, openLogContext, withLogFields, withoutContext } from '../../../core/util/context.ts'
import { openLog } from '../../../core/log/log.ts'
import { svcFor } from '../../support/cli.ts'
import { makeHome, send } from '../../support/gateway.ts'
import type { Answer, TestGateway } from '../../support/gateway.ts'
import { startModelServer } from '../../support/model-server.ts'
import { spawnGateway } from '../../support/process.ts'
import { openStream } from '../../support/sse.ts'
import { eventually } from '../../support/wait.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const DEBUG = 20
const WARN = 40

const model = await startModelServer()
t.teardown(() => model.stop())
const home = makeHome({
	config: `
providers:
  lab: {kind: openai, base_url: "${model.url}", api_key: key, model: small-1}
  offline: {kind: offline}
default_provider: offline
plugins: {odd: true}
`,
	files: {
		'plugins/odd/index.ts': `
export default {
	name: 'odd',
	needs: ['auth'],
	start(ctx) {
		ctx.primitive({
			name: 'odd.fail',
			description: 'Fails.',
			run: () => { ctx.log.warn('warning of a tool'); throw new Error('odd') },
		})
		ctx.primitive({
			name: 'odd.later',
			description: 'Says something once its run is over.',
			run: (_args, call) => {
				const look = async () => {
					while (await ctx.use('runs').isActive(call.run_id)) await new Promise((next) => setTimeout(next, 5))
					setTimeout(() => ctx.log.warn('late warning'), 20)
				}
				void look()
				return 'ok'
			},
		})
	},
	http(server, ctx) {
		server.route({ method: 'GET', path: '/odd/big', options: { auth: false }, handler: () => ({ count: 1n }) })
		server.route({
			method: 'GET',
			path: '/odd',
			options: { auth: false },
			handler: async () => {
				ctx.log.warn('warning of a route')
				throw new Error('odd')
			},
		})
	},
}
`,
	},
})
t.teardown(() => rmSync(home, { recursive: true, force: true }))
const gateway = await spawnGateway(home, { SVC_LOG_LEVEL: 'debug' })
t.teardown(() => gateway.end())
const request: TestGateway['request'] = (method, path, options) => send(gateway.url + path, method, options)
const idOf = async (path: string, id?: string, method = 'GET'): Promise<string> =>
	(await request(method, path, { headers: id === undefined ? {} : { 'x-request-id': id } })).headers.get(
		'x-request-id',
	) ?? ''
const texts = (): string[] =>
	gateway
		.errors()
		.split('\n')
		.filter((line) => line.startsWith('{') && line.endsWith('}'))
const lines = (wanted: (line: Answer) => boolean): Promise<Answer[]> =>
	eventually(
		() =>
			texts()
				.map((line) => JSON.parse(line) as Answer)
				.filter(wanted),
		(found) => found.length > 0,
	)

void t.test('every response has the id of its request', async (t) => {
	t.match(await idOf('/healthz'), UUID)
	t.not(await idOf('/healthz'), await idOf('/healthz'))
	for (const id of ['a', 'order.42_x-1', 'x'.repeat(128)]) t.equal(await idOf('/v1/agents', id), id)
	for (const id of ['x'.repeat(129), 'two words', 'a\\nb', 'é', 'a,b', '"'])
		t.match(await idOf('/v1/agents', id), UUID, id)
	for (const path of ['/nothing/here', '/%zz', '/v1/agents/nobody', '/odd'])
		t.equal(await idOf(path, 'mine'), 'mine', path)
	t.equal(await idOf('/v1/agents', 'mine', 'POST'), 'mine', 'a request with an invalid body')

	const stream = await openStream(gateway.url, { headers: { 'x-request-id': 'my.stream' } })
	t.equal(stream.headers['x-request-id'], 'my.stream')
	stream.close()
	const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
	t.teardown(() => agent.destroy())
	const ids = ['one', 'two', 'three'].map(
		(id) =>
			new Promise((resolve) => {
				http.get(`${gateway.url}/healthz`, { agent, headers: { 'x-request-id': id } }, (response) => {
					response.resume()
					resolve(response.headers['x-request-id'])
				})
			}),
	)
	t.strictSame(await Promise.all(ids), ['one', 'two', 'three'], 'also on one connection')
	const twice = await new Promise<string>((resolve) => {
		const { hostname, port } = new URL(gateway.url)
		const socket = connect(Number(port), hostname)
		let text = ''
		socket.on('data', (data) => (text += String(data)))
		socket.on('close', () => resolve(text))
		socket.end(
			'GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-request-id: a\r\nx-request-id: b\r\nconnection: close\r\n\r\n',
		)
	})
	t.match(twice, /\r\nx-request-id: [0-9a-f]{8}-/i, 'a repeated header is ignored')
})

void t.test('each request is logged once, with its route', async (t) => {
	await request('GET', '/v1/agents/nobody?secret=1', { headers: { 'x-request-id': 'look.1' } })
	const about = (id: string) => lines((line) => line.request_id === id && line.msg === 'a request was answered')
	const [line, ...rest] = await about('look.1')
	t.match(line, { level: DEBUG, method: 'get', route: '/v1/agents/{name}', status: 404, request_id: 'look.1' })
	t.type(line.ms, 'number')
	t.strictSame(rest, [])
	await request('GET', '/nothing/here', { headers: { 'x-request-id': 'look.2' } })
	t.match(await about('look.2'), [{ route: null, status: 404 }])
})

void t.test('errors and warnings of a request have its id', async (t) => {
	t.equal((await request('GET', '/odd', { headers: { 'x-request-id': 'odd.1' } })).status, 500)
	const found = await lines((line) => line.request_id === 'odd.1' && line.msg === 'a request failed')
	t.match(found, [{ method: 'get', path: '/odd', err: { message: 'odd' } }])
	t.match(await lines((line) => line.request_id === 'odd.1' && line.level === WARN), [
		{ msg: 'warning of a route', plugin: 'odd' },
	])
})

void t.test('a response that cannot be serialized is logged with the plugin of its route', async (t) => {
	t.equal((await request('GET', '/odd/big', { headers: { 'x-request-id': 'odd.2' } })).status, 500)
	const found = await lines((line) => line.request_id === 'odd.2' && line.msg === 'a request failed')
	t.match(found, [{ method: 'get', path: '/odd/big', plugin: 'odd', err: { message: /BigInt/ } }])
	t.equal(found.length, 1)
})

void t.test('lines about a run have its id, its agent and the id of its request', async (t) => {
	model.on('refuse', { status: 400 })
	await request('POST', '/v1/agents', { body: { name: 'ada' } })
	await request('POST', '/v1/agents', { body: { name: 'bob', config: { provider: 'lab' } } })
	const start = async (agent: string, prompt: string, id: string): Promise<Answer> => {
		const headers = { 'x-request-id': id }
		const { run_id } = (await request('POST', `/v1/agents/${agent}/runs`, { body: { prompt }, headers })).body
		return eventually(
			async () => {
				await pause(50) // each request is a line of the log, of which only the end is kept
				return (await request('GET', `/v1/runs/${run_id}`)).body
			},
			(run) => run.ended_at !== null,
		)
	}
	const failed = await start('bob', 'refuse', 'begin.1')
	t.equal(failed.request_id, 'begin.1')
	const about = { run_id: failed.run_id, agent: 'bob', request_id: 'begin.1' }
	t.match(await lines(({ run_id, level }) => run_id === failed.run_id && level === WARN), [
		{ ...about, code: 'model_rejected' },
	])
	t.match((await request('GET', `/v1/audit?run_id=${failed.run_id}&event_type=run.started`)).body.events, [
		{ payload: { request_id: 'begin.1' } },
	])

	const run = await start('ada', '/tool odd.fail {}', 'begin.2')
	const warnings = await lines(({ run_id, level }) => run_id === run.run_id && level === WARN)
	const fields = { run_id: run.run_id, agent: 'ada', request_id: 'begin.2' }
	t.match(warnings, [
		{ ...fields, msg: 'warning of a tool' },
		{ ...fields, msg: 'a tool failed', tool: 'odd.fail' },
	])

	const parent = await start('ada', '/tool subagent.spawn {"prompt": "hi"}', 'begin.3')
	const { body: runs } = await request('GET', '/v1/agents/ada/runs?limit=1')
	t.match(runs, [{ parent_run_id: parent.run_id, request_id: 'begin.3' }], 'its sub-agent, too')

	const runConcurrently = async (n: number): Promise<void> => {
		const id = `concurrent.${n}`
		const ended = n % 2 === 0 ? await start('ada', '/tool odd.fail {}', id) : await start('bob', 'refuse', id)
		t.equal(ended.request_id, id)
		const logged = await lines(({ run_id, level }) => run_id === ended.run_id && level === WARN)
		t.ok(
			logged.every(({ request_id, agent }) => request_id === id && agent === ended.agent),
			'no fields of another run',
		)
	}
	await Promise.all(Array.from({ length: 10 }, (_, n) => runConcurrently(n)))

	await start('ada', '/tool odd.later {}', 'begin.4')
	const [late] = await lines(({ msg }) => msg === 'late warning')
	t.notHas(late, 'run_id', 'work after the end of a run does not have its fields')
	t.notHas(late, 'request_id')
	const names = ['run_id', 'agent', 'request_id']
	const twice = texts().filter((text) => names.some((field) => text.split(`"${field}":`).length > 2))
	t.strictSame(twice, [], 'no field occurs twice')
})

void t.test('fields apply until the work ends', async (t) => {
	t.strictSame(logFields(), {})
	let later: Promise<object> | undefined
	await withLogFields({ run_id: 'one' }, async () => {
		await pause(1)
		t.strictSame(logFields(), { run_id: 'one' })
		await withLogFields({ run_id: 'two' }, async () => t.strictSame(logFields(), { run_id: 'two' }))
		t.strictSame(logFields(), { run_id: 'one' })
		later = pause(20).then(() => logFields())
	})
	t.strictSame(logFields(), {})
	t.strictSame(await later, {})
	await t.rejects(
		withLogFields({ run_id: 'three' }, () => Promise.reject(new Error('odd'))),
		{ message: 'odd' },
	)
	const { run, end } = openLogContext({ request_id: 'r' })
	t.strictSame(
		run(() => withoutContext(() => logFields())),
		{},
	)
	t.strictSame(
		run(() => logFields()),
		{ request_id: 'r' },
	)
	end()
	t.strictSame(
		run(() => logFields()),
		{},
	)
})

void t.test('in the pretty format, an error can neither move the cursor nor forge a line', async (t) => {
	const lines: string[] = []
	const write = process.stderr.write.bind(process.stderr)
	const { isTTY } = process.stderr
	process.stderr.write = (text: unknown) => lines.push(String(text)) > 0
	process.stderr.isTTY = true
	t.teardown(() => Object.assign(process.stderr, { write, isTTY }))
	const log = openLog({ level: 'trace', format: 'pretty' })
	log.error({ err: new Error('they said \u001b[2J\u009b1A\r\n12:00:00 info  all is well') }, 'odd')
	process.stderr.write = write
	const text = lines.join('')
	t.match(text, /Error: they said \\x1b\[2J\\x9b1A\\x0d\n/)
	// oxlint-disable-next-line no-control-regex -- the test looks for control characters
	t.notMatch(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
	const [, ...below] = text.trimEnd().split('\n')
	t.ok(below.length > 2, 'the stack is included')
	t.ok(
		below.every((line) => line.startsWith('   ')),
		'the stack is indented',
	)
})

void t.test('a change of log.level applies at once, including running plugins', async (t) => {
	const logger = `export default {
		name: 'logger',
		http: (server, ctx) => server.route({ path: '/log/{word}', method: 'GET', options: { auth: false }, handler: ({ params }) => { ctx.log.debug(params.word); return '' } }),
	}`
	const home = makeHome({
		config: 'log: {level: warn, format: json}\nplugins: {logger: true}\n',
		files: { 'plugins/logger/index.js': logger },
	})
	t.teardown(() => rmSync(home, { recursive: true, force: true }))
	const quiet = await spawnGateway(home, { SVC_LOG_LEVEL: '' })
	t.teardown(() => quiet.end())
	const svc = svcFor({ home })
	await send(`${quiet.url}/log/first`, 'GET')
	t.match((await svc(['config', 'set', 'log.level', 'debug', '--json'])).json(), { gateway: 'in_force' })
	await send(`${quiet.url}/log/second`, 'GET')
	await eventually(() => quiet.errors().includes('"second"'))
	t.equal((await svc(['config', 'set', 'log.level', 'warn'])).code, 0)
	await send(`${quiet.url}/log/third`, 'GET')
	t.equal(await quiet.end(), 0)
	t.notMatch(quiet.errors(), /"first"|"third"/)
})
