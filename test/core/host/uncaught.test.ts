/** Uncaught errors of plugins, of every kind: each is reported with its plugin, and does not affect others. */
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { makeHome, send } from '../../support/gateway.ts'
import { spawnGateway } from '../../support/process.ts'
import type { GatewayProcess } from '../../support/process.ts'
import { WAIT_LIMIT_MS } from '../../support/wait.ts'

/** Each has one fault, by itself or when an agent is created. Its error contains the name of the plugin. */
const faults: Record<string, string> = {
	'timer-throws': `setTimeout(() => { throw new Error('timer-throws did it') }, 1)`,
	'timer-rejects': `setTimeout(async () => { throw new Error('timer-rejects did it') }, 1)`,
	'interval-rejects': `
		const timer = setInterval(() => Promise.reject('interval-rejects did it'), 20)
		ctx.defer(() => clearInterval(timer), 'timer')`,
	// The stack of a failed connection contains no line of the plugin.
	'socket-fails': `import('node:net').then(({ connect }) => connect(1, '127.0.0.1'))`,
	'fetch-fails': `setTimeout(() => fetch('http://127.0.0.1:1/'), 1)`,
	'emitter-fails': `import('node:events').then(({ EventEmitter }) => new EventEmitter().emit('error', 'emitter-fails did it'))`,
	'no-error': `setTimeout(() => Promise.reject(Object.create(null)), 1)`,
	'handler-rejects': `ctx.on('agent.created', async () => { throw new Error('handler-rejects did it') })`,
	'handler-throws': `ctx.on('agent.created', () => { throw new Error('handler-throws did it') })`,
	'handler-leaves': `ctx.on('agent.created', () => void Promise.reject('handler-leaves did it'))`,
	'generation-rejects': `ctx.onGeneration(() => Promise.reject('generation-rejects did it'))`,
	'emit-refused': `setTimeout(() => ctx.emit({ event_type: 'run.completed', payload: {} }), 1)`,
	'tool-leaves': `ctx.primitive({
		name: 'wrong.leave', description: 'Leaves something.',
		run: () => void import('node:net').then(({ connect }) => connect(1, '127.0.0.1')),
	})`,
}
const plugins = Object.entries(faults).map(([name, body]): [string, string] => [
	name,
	`export default { name: '${name}', start(ctx) { ${body} } }\n`,
])
const others: [string, string][] = [
	['top-level', `setTimeout(() => Promise.reject('top-level did it'), 1)\nexport default { name: 'top-level' }\n`],
	[
		'route-leaves',
		`export default { name: 'route-leaves', http(server) {
			server.route({ method: 'POST', path: '/leave', handler: () => (void fetch('http://127.0.0.1:1/'), 'left') })
		} }\n`,
	],
	[
		'server-resets', // it has no listener for errors of the sockets that it accepts
		`import { createServer } from 'node:net'
		export default { name: 'server-resets', needs: ['auth'], start(ctx) {
			const server = createServer((socket) => socket.write('hello')).listen(0, '127.0.0.1')
			ctx.defer(() => server.close(), 'server')
			return { port: () => server.address().port }
		}, http(server, ctx) {
			server.route({ method: 'GET', path: '/port', handler: () => ({ port: ctx.use('server-resets').port() }) })
		} }\n`,
	],
	[
		'good',
		`export default { name: 'good', start: (ctx) => ctx.primitive({ name: 'good.day', description: 'Greets.', run: () => 'good day' }) }\n`,
	],
]

interface Plugin {
	name: string
	state: string
	last_error: string | null
}

function startWith(all: [string, string][], settings = ''): Promise<GatewayProcess> {
	const files = Object.fromEntries(all.map(([name, text]) => [`plugins/${name}/index.js`, text]))
	const names = all.map(([name]) => `  ${name}: true\n`).join('')
	return spawnGateway(makeHome({ config: `${settings}plugins:\n${names}`, files }))
}

async function pluginsOf({ url }: GatewayProcess): Promise<Map<string, Plugin>> {
	const { body } = await send<Plugin[]>(`${url}/v1/plugins`, 'GET')
	return new Map(body.map((one) => [one.name, one]))
}

/** Polls until `look` returns neither undefined nor false. Unlike `eventually`, accepts ''. */
async function until<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
	const end = Date.now() + WAIT_LIMIT_MS
	for (;;) {
		const found = await look()
		if (found !== undefined && found !== false) return found
		if (Date.now() > end) throw new Error(`${WAIT_LIMIT_MS / 1000} s passed without: ${what}`)
		await pause(10)
	}
}

/** Waits until a plugin is in that state, and returns its error. */
function failing(gateway: GatewayProcess, name: string, state = 'failing'): Promise<string> {
	return until(`${name} is ${state}`, async () => {
		const plugin = (await pluginsOf(gateway)).get(name)
		return plugin?.state === state && (plugin.last_error ?? '')
	})
}

/** Waits for an event of this type about a plugin, and returns the messages of all such events. */
function eventsOf({ url }: GatewayProcess, type: string, plugin?: string): Promise<string[]> {
	return until(`${type} of ${plugin}`, async () => {
		const { body } = await send(`${url}/v1/audit?event_type=${type}&limit=500`, 'GET')
		const found = (body.events as { payload: { plugin?: string; message: string } }[])
			.filter(({ payload }) => payload.plugin === plugin)
			.map(({ payload }) => payload.message)
		return found.length > 0 && found
	})
}

/** Waits for a line with this text in the log, which may be written after the status changes, and returns all such lines. */
const linesWith = (gateway: GatewayProcess, text: string): Promise<string[]> =>
	until(`the log has "${text}"`, async () => {
		const lines = gateway
			.errors()
			.split('\n')
			.filter((line) => line.includes(text))
		return lines.length > 0 && lines
	})

void t.test('each error is reported with its plugin in the status, the events and the log', async (t) => {
	const gateway = await startWith([...plugins, ...others])
	t.teardown(() => gateway.kill())
	const { url } = gateway
	const post = (path: string, body: object) => send(url + path, 'POST', { body })

	t.equal((await post('/v1/agents', { name: 'ada', config: { provider: 'offline' } })).status, 201)
	t.equal((await post('/leave', {})).body, 'left')
	await post('/v1/agents/ada/runs', { prompt: '/tool wrong.leave {}' })
	const { body: listening } = await send<{ port: number }>(`${url}/port`, 'GET')
	const socket = connect(listening.port, '127.0.0.1')
	socket.once('data', () => socket.resetAndDestroy())

	const messages: Record<string, RegExp> = {
		'socket-fails': /ECONNREFUSED/,
		'fetch-fails': /fetch failed/,
		'no-error': /has no text/,
		'emit-refused':
			/"run\.completed": event types that begin with "run\." are the gateway's own; begin yours with "emit-refused\."/,
		'tool-leaves': /ECONNREFUSED/,
		'route-leaves': /fetch failed/,
		'server-resets': /ECONNRESET/,
	}
	for (const [name] of [...plugins, ...others].filter(([name]) => name !== 'good')) {
		const error = await failing(gateway, name)
		t.match(error, messages[name] ?? new RegExp(`${name} did it`), name)
		const [message] = await eventsOf(gateway, 'plugin.failed', name)
		t.match(message, messages[name] ?? new RegExp(`"${name}".*${name} did it`), name)
		t.ok(await linesWith(gateway, name), `the log names ${name}`)
	}

	const { body: verbose } = await send<string>(`${url}/readyz?verbose`, 'GET')
	t.match(verbose, /^\[\+\]gateway ready$/m, 'none of them is attributed to the gateway')
	t.match(verbose, /^\[-\]plugins .*emit-refused, .*timer-throws/m)
	t.notMatch(verbose, /good|did it/, 'no error messages, and no healthy plugin')
	t.equal((await pluginsOf(gateway)).get('good')?.state, 'running')
	const { body: run } = await post('/v1/agents/ada/runs', { prompt: '/tool good.day {}' })
	t.equal((await post('/v1/agents', { name: 'bob' })).status, 201)
	await until('its run is completed', async () => {
		const { body } = await send(`${url}/v1/runs/${run.run_id}`, 'GET')
		return body.status === 'completed'
	})
	t.equal(await gateway.end(), 0, 'the gateway ends gracefully')
})

/** Tools whose events cannot be stored. */
const wrongEvents = {
	bigint: '{ n: 1n }',
	cycle: '(() => { const one = {}; one.one = one; return one })()',
	getter: `{ get n() { throw new Error('no number') } }`,
	text: `'text'`,
}
const tools = Object.entries(wrongEvents).map(
	([name, payload]) => `ctx.primitive({
		name: 'odd.${name}', description: 'Emits an event.',
		run: (args, call) => call.emit({ event_type: 'odd.told', payload: ${payload} }),
	})`,
)
const edited = (body: string): string => `export default { name: 'edited', start() { ${body} } }\n`
/** Plugins that fail one after another. */
const sequence: Record<string, string> = {
	edited: edited(`setTimeout(() => Promise.reject('edited did it'), 1)`),
	gone: `
		import { existsSync } from 'node:fs'
		export default { name: 'gone', start(ctx) {
			const found = new Promise((_, reject) => {
				setInterval(() => existsSync(ctx.gateway.home + '/go') && reject(new Error('gone did it')), 10)
			})
			ctx.defer(() => void found.then(() => {}), 'nothing')
		} }\n`,
	odd: `export default { name: 'odd', start(ctx) { ${tools.join('\n')} } }\n`,
	// A callback of a socket that a server has accepted has no context, and this error has no stack.
	mask: `
		import { createServer } from 'node:net'
		export default { name: 'mask', needs: ['auth'], start(ctx) {
			const server = createServer((socket) => {
				socket.on('error', () => {})
				socket.on('data', () => { const error = new Error('whose is it?'); error.stack = 'whose is it?'; throw error })
			}).listen(0, '127.0.0.1')
			return { port: () => server.address().port }
		}, http(server, ctx) {
			server.route({ method: 'GET', path: '/port', handler: () => ({ port: ctx.use('mask').port() }) })
		} }\n`,
}

void t.test('one plugin after another', async (t) => {
	const home = makeHome({
		config: 'plugins: {edited: true, gone: true, odd: true, mask: true}\n',
		files: Object.fromEntries(Object.entries(sequence).map(([name, text]) => [`plugins/${name}/index.js`, text])),
	})
	const gateway = await spawnGateway(home)
	t.teardown(() => gateway.kill())

	await t.test('a plugin that is fixed after a failure is running again', async (t) => {
		await failing(gateway, 'edited')
		t.equal((await send(`${gateway.url}/v1/health`, 'GET')).body.status, 'degraded')
		writeFileSync(join(home, 'plugins/edited/index.js'), edited(''))
		t.equal(await failing(gateway, 'edited', 'running'), '')
		t.equal((await send(`${gateway.url}/v1/health`, 'GET')).body.status, 'ok')
	})

	await t.test('an error of a plugin that was switched off is reported, too', async (t) => {
		t.equal((await pluginsOf(gateway)).get('gone')?.state, 'running')
		writeFileSync(join(home, 'config/gateway.yaml'), 'plugins: {edited: true, gone: false, odd: true, mask: true}\n')
		await until('it is off', async () => !(await pluginsOf(gateway)).has('gone'))
		writeFileSync(join(home, 'go'), '')
		const [message] = await eventsOf(gateway, 'plugin.failed', 'gone')
		t.match(message, /"gone" does not run, but something that it started does.*gone did it/)
		t.match(await linesWith(gateway, 'gone did it'), [/./])
		t.notOk((await pluginsOf(gateway)).has('gone'))
		t.match((await send(`${gateway.url}/readyz?verbose`, 'GET')).body, /\nok\n$/)
	})

	await t.test('a tool whose event cannot be stored fails, and its run continues', async (t) => {
		await send(`${gateway.url}/v1/agents`, 'POST', { body: { name: 'ada', config: { provider: 'offline' } } })
		for (const name of Object.keys(wrongEvents)) {
			const prompt = `/tool odd.${name} {}`
			const { body } = await send(`${gateway.url}/v1/agents/ada/runs`, 'POST', { body: { prompt } })
			const run = await until(`the run of ${name} ends`, async () => {
				const { body: now } = await send(`${gateway.url}/v1/runs/${body.run_id}`, 'GET')
				return now.status === 'completed' && now
			})
			t.match(run.answer, /plugin .*odd.*the payload of .*odd\.told.* must be a JSON object/, name)
		}
	})

	await t.test('an error that no plugin caused is reported as the gateway’s own', async (t) => {
		const { body: listening } = await send<{ port: number }>(`${gateway.url}/port`, 'GET')
		const socket = connect(listening.port, '127.0.0.1')
		socket.write('x')
		t.teardown(() => socket.destroy())
		t.strictSame(await eventsOf(gateway, 'gateway.error'), ['whose is it?'])
		t.equal((await pluginsOf(gateway)).get('mask')?.state, 'running')
		const { body } = await send(`${gateway.url}/readyz?verbose`, 'GET')
		t.match(body, /^\[-\]gateway ready, uncaught errors of its own: 1 \(see the log\)$/m)
		t.match(body, /\ndegraded\n$/)
		t.match(await linesWith(gateway, 'an error of the gateway was thrown'), [/fatal|FATAL|"level":60/])
	})
})

void t.test('endless rejections do not flood the log or the events, and do not block requests', async (t) => {
	const storm = `setImmediate(function again() { Promise.reject(new Error('storm did it')); setImmediate(again) })`
	const gateway = await startWith([['storm', `export default { name: 'storm', start() { ${storm} } }\n`]])
	t.teardown(() => gateway.kill())
	const countOf = async (): Promise<number> => Number(/\((\d+) so far/.exec(await failing(gateway, 'storm'))?.[1] ?? 1)
	await until('2,000 rejections', async () => (await countOf()) >= 2000)
	const lines = await linesWith(gateway, 'was thrown, and nothing caught it')
	const events = await eventsOf(gateway, 'plugin.failed', 'storm')
	// One a minute each. More than one means that 2,000 rejections took minutes on a slow machine.
	t.ok(lines.length > 0 && lines.length < 20, `${lines.length} lines`)
	t.ok(events.length > 0 && events.length < 20, `${events.length} events`)
	t.equal((await send(`${gateway.url}/v1/agents`, 'POST', { body: { name: 'ada' } })).status, 201)
})
