/** By what a line of the log is found again: the request or the run that it is about. */
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
			run: () => { ctx.log.warn('said by a tool'); throw new Error('odd') },
		})
		ctx.primitive({
			name: 'odd.later',
			description: 'Says something once its run is over.',
			run: (_args, call) => {
				const look = async () => {
					while (await ctx.use('runs').isActive(call.run_id)) await new Promise((next) => setTimeout(next, 5))
					setTimeout(() => ctx.log.warn('said later'), 20)
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
				ctx.log.warn('said on the way')
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
const lines = async (wanted: (line: Answer) => boolean): Promise<Answer[]> => {
	for (;;) {
		const found = texts()
			.map((line) => JSON.parse(line) as Answer)
			.filter(wanted)
		if (found.length > 0) return found
		await pause(10)
	}
}

void t.test('every answer names its request', async (t) => {
	t.match(await idOf('/healthz'), UUID)
	t.not(await idOf('/healthz'), await idOf('/healthz'))
	for (const id of ['a', 'order.42_x-1', 'x'.repeat(128)]) t.equal(await idOf('/v1/agents', id), id)
	for (const id of ['x'.repeat(129), 'two words', 'a\\nb', 'é', 'a,b', '"'])
		t.match(await idOf('/v1/agents', id), UUID, id)
	for (const path of ['/nothing/here', '/%zz', '/v1/agents/nobody', '/odd'])
		t.equal(await idOf(path, 'mine'), 'mine', path)
	t.equal(await idOf('/v1/agents', 'mine', 'POST'), 'mine', 'one that is refused for its body')

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
	t.strictSame(await Promise.all(ids), ['one', 'two', 'three'], 'of one connection, too')
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
	t.match(twice, /\r\nx-request-id: [0-9a-f]{8}-/i, 'two of them are none')
})

void t.test('a line for each request, by its route', async (t) => {
	await request('GET', '/v1/agents/nobody?secret=1', { headers: { 'x-request-id': 'look.1' } })
	const about = (id: string) => lines((line) => line.request_id === id && line.msg === 'a request was answered')
	const [line, ...more] = await about('look.1')
	t.match(line, { level: DEBUG, method: 'get', route: '/v1/agents/{name}', status: 404, request_id: 'look.1' })
	t.type(line.ms, 'number')
	t.strictSame(more, [])
	await request('GET', '/nothing/here', { headers: { 'x-request-id': 'look.2' } })
	t.match(await about('look.2'), [{ route: null, status: 404 }])
})

void t.test('what goes wrong in a request says which it was, wherever it is logged', async (t) => {
	t.equal((await request('GET', '/odd', { headers: { 'x-request-id': 'odd.1' } })).status, 500)
	const found = await lines((line) => line.request_id === 'odd.1' && line.msg === 'a request failed')
	t.match(found, [{ method: 'get', path: '/odd', err: { message: 'odd' } }])
	t.match(await lines((line) => line.request_id === 'odd.1' && line.level === WARN), [
		{ msg: 'said on the way', plugin: 'odd' },
	])
})

void t.test('an answer that is no JSON is logged, with the plugin whose route it is', async (t) => {
	t.equal((await request('GET', '/odd/big', { headers: { 'x-request-id': 'odd.2' } })).status, 500)
	const found = await lines((line) => line.request_id === 'odd.2' && line.msg === 'a request failed')
	t.match(found, [{ method: 'get', path: '/odd/big', plugin: 'odd', err: { message: /BigInt/ } }])
	t.equal(found.length, 1)
})

void t.test('a run says who it is, and which request began it', async (t) => {
	model.on('refuse', { status: 400 })
	await request('POST', '/v1/agents', { body: { name: 'ada' } })
	await request('POST', '/v1/agents', { body: { name: 'bob', config: { provider: 'lab' } } })
	const start = async (agent: string, prompt: string, id: string): Promise<Answer> => {
		const headers = { 'x-request-id': id }
		const { run_id } = (await request('POST', `/v1/agents/${agent}/runs`, { body: { prompt }, headers })).body
		for (;;) {
			const run = (await request('GET', `/v1/runs/${run_id}`)).body
			if (run.ended_at !== null) return run
			await pause(50) // each look is a line of the log, of which only the end is kept
		}
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
	const said = await lines(({ run_id, level }) => run_id === run.run_id && level === WARN)
	const whose = { run_id: run.run_id, agent: 'ada', request_id: 'begin.2' }
	t.match(said, [
		{ ...whose, msg: 'said by a tool' },
		{ ...whose, msg: 'a tool failed', tool: 'odd.fail' },
	])

	const parent = await start('ada', '/tool subagent.spawn {"prompt": "hi"}', 'begin.3')
	const { body: runs } = await request('GET', '/v1/agents/ada/runs?limit=1')
	t.match(runs, [{ parent_run_id: parent.run_id, request_id: 'begin.3' }], 'its sub-agent, too')

	const inCrowd = async (n: number): Promise<void> => {
		const id = `crowd.${n}`
		const one = n % 2 === 0 ? await start('ada', '/tool odd.fail {}', id) : await start('bob', 'refuse', id)
		t.equal(one.request_id, id)
		const told = await lines(({ run_id, level }) => run_id === one.run_id && level === WARN)
		t.ok(
			told.every(({ request_id, agent }) => request_id === id && agent === one.agent),
			'and of no other',
		)
	}
	await Promise.all(Array.from({ length: 10 }, (_, n) => inCrowd(n)))

	await start('ada', '/tool odd.later {}', 'begin.4')
	const [late] = await lines(({ msg }) => msg === 'said later')
	t.notHas(late, 'run_id', 'what outlives a run is not about it')
	t.notHas(late, 'request_id')
	const fields = ['run_id', 'agent', 'request_id']
	const twice = texts().filter((text) => fields.some((field) => text.split(`"${field}":`).length > 2))
	t.strictSame(twice, [], 'each field once')
})

void t.test('fields stand for as long as the work', async (t) => {
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

void t.test('an error in a line for people neither moves the cursor nor forges a line', async (t) => {
	const lines: string[] = []
	const write = process.stderr.write.bind(process.stderr)
	process.stderr.write = (text: unknown) => lines.push(String(text)) > 0
	t.teardown(() => (process.stderr.write = write))
	const log = openLog({ level: 'trace', format: 'pretty' })
	log.error({ err: new Error('they said \u001b[2J\u009b1A\r\n12:00:00 info  all is well') }, 'odd')
	process.stderr.write = write
	const text = lines.join('')
	t.match(text, /Error: they said \\x1b\[2J\\x9b1A\\x0d\n/)
	// oxlint-disable-next-line no-control-regex -- control characters are what this is about
	t.notMatch(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
	const [, ...below] = text.trimEnd().split('\n')
	t.ok(below.length > 2, 'the stack is there')
	t.ok(
		below.every((line) => line.startsWith('   ')),
		'and stands below its line',
	)
})

void t.test('a change of log.level applies at once, also to running plugins', async (t) => {
	const says = `export default {
		name: 'says',
		http: (server, ctx) => server.route({ path: '/says/{word}', method: 'GET', options: { auth: false }, handler: ({ params }) => { ctx.log.debug(params.word); return '' } }),
	}`
	const home = makeHome({
		config: 'log: {level: warn, format: json}\nplugins: {says: true}\n',
		files: { 'plugins/says/index.js': says },
	})
	t.teardown(() => rmSync(home, { recursive: true, force: true }))
	const quiet = await spawnGateway(home, { SVC_LOG_LEVEL: '' })
	t.teardown(() => quiet.end())
	const svc = svcFor({ home })
	await send(`${quiet.url}/says/first`, 'GET')
	t.match((await svc(['config', 'set', 'log.level', 'debug', '--json'])).json(), { gateway: 'in_force' })
	await send(`${quiet.url}/says/second`, 'GET')
	while (!quiet.errors().includes('"second"')) await pause(10)
	t.equal((await svc(['config', 'set', 'log.level', 'warn'])).code, 0)
	await send(`${quiet.url}/says/third`, 'GET')
	t.equal(await quiet.end(), 0)
	t.notMatch(quiet.errors(), /"first"|"third"/)
})
