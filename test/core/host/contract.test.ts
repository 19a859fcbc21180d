/** The contract of plugins, for a third-party plugin that imports nothing of the gateway. */
import { connect } from 'node:net'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { follow } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'

const clock = (version: string): string => `
export default {
	name: 'clock',
	version: '${version}',
	needs: ['auth'],
	scopes: { 'clock:read': 'Read clocks' },
	errors: { clock_stopped: { status: 409, description: 'The clock was stopped.' } },
	start(ctx) {
		class Clock {
			#version = '${version}'
			version() { return this.#version }
			fail(code) { return ctx.fault(code, 'the clock does not say', { errors: [{ path: 'clock', message: 'stopped' }] }) }
			check(error) { return [ctx.isFault(error), ctx.isFault(error, 'clock_stopped'), ctx.isFault(error, 'not_found')] }
		}
		return new Clock()
	},
	http(server, ctx, clock) {
		const route = (method, path, handler) =>
			server.route({ method, path, handler, options: { auth: { access: { scope: ['clock:read', '*'] } } } })
		route('GET', '/v1/clock', () => ({ version: clock.version(), has: 'version' in clock }))
		route('POST', '/v1/clock', () => ({ version: clock.version() }))
		route('GET', '/v1/clock/fault', () => { throw clock.fail('clock_stopped') })
		route('GET', '/v1/clock/general', () => { throw clock.fail('not_found') })
		route('GET', '/v1/clock/unknown', () => { throw clock.fail('clock_melted') })
		route('GET', '/v1/clock/check', () => ({ fault: clock.check(clock.fail('clock_stopped')), bug: clock.check(new Error('x')) }))
	},
	legacy(server, ctx, clock) {
		server.route({ method: 'GET', path: '/clock', options: { auth: false }, handler: () => clock.version() })
	},
}
`

async function startWith(t: Test, name: string, code: string, settings = ''): Promise<TestGateway> {
	const gateway = await startGateway({
		config: `${settings}plugins: {${name}: true}\n`,
		files: { [`plugins/${name}/index.js`]: code },
	})
	t.teardown(() => gateway.stop())
	return gateway
}

void t.test('routes get the service of their plugin, on both addresses', async (t) => {
	const gateway = await startWith(t, 'clock', clock('1.0.0'), 'legacy: {port: 0}\n')
	t.strictSame((await gateway.request('GET', '/v1/clock')).body, { version: '1.0.0', has: true })
	const legacy = gateway.running.gateway.status.url('legacy') ?? ''
	t.equal(await (await fetch(`${legacy}/clock`)).text(), '1.0.0')
})

void t.test('a request that outlives its instance reaches the service of the next one', async (t) => {
	const gateway = await startWith(t, 'clock', clock('1.0.0'))
	const { hostname, port } = new URL(gateway.url)
	const socket = connect(Number(port), hostname)
	await once(socket, 'connect')
	socket.write(
		'POST /v1/clock HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{',
	)
	await eventually(gateway.running.gateway.status.openRequests, (open) => open === 1)
	writeFileSync(join(gateway.home, 'plugins/clock/index.js'), clock('2.0.0'))
	await gateway.running.gateway.reload()
	let answer = ''
	socket.on('data', (piece) => (answer += String(piece)))
	socket.write('}')
	await once(socket, 'close')
	t.match(answer, /^HTTP\/1\.1 200 [^]*"version":"2\.0\.0"/)
})

void t.test('a plugin creates faults with general codes and its own', async (t) => {
	const gateway = await startWith(t, 'clock', clock('1.0.0'))
	const own = await gateway.request('GET', '/v1/clock/fault')
	t.equal(own.status, 409)
	t.match(own.body, { code: 'clock_stopped', message: 'the clock does not say', errors: [{ path: 'clock' }] })
	t.match(await gateway.request('GET', '/v1/clock/general'), { status: 404, body: { code: 'not_found' } })
	t.match(await gateway.request('GET', '/v1/clock/unknown'), {
		status: 400,
		body: { code: 'plugin_invalid', message: /no error code "clock_melted"; add it to the plugin's errors/ },
	})
	t.strictSame((await gateway.request('GET', '/v1/clock/check')).body, {
		fault: [true, true, false],
		bug: [false, false, false],
	})
	const { body } = await gateway.request('GET', '/v1/openapi.json')
	t.ok(body.components.schemas.Error.properties.code.enum.includes('clock_stopped'))
})

void t.test('tokens can have the scopes of a plugin while it runs', async (t) => {
	const gateway = await startWith(t, 'clock', clock('1.0.0'))
	const create = (scopes: string[]) => gateway.request('POST', '/v1/auth/tokens', { body: { scopes } })
	const reader = await create(['clock:read'])
	t.equal(reader.status, 201)
	t.equal((await gateway.request('GET', '/v1/clock', { token: reader.body.token })).status, 200)
	const other = await create(['events:read'])
	t.match(await gateway.request('GET', '/v1/clock', { token: other.body.token }), {
		status: 403,
		body: { message: /clock:read/ },
	})
	t.match(await create(['clock:write']), { status: 400, body: { message: /must be one of .*clock:read/ } })
	writeFileSync(join(gateway.home, 'config/gateway.yaml'), 'plugins: {clock: false}\n')
	await gateway.running.gateway.reload()
	t.equal((await create(['clock:read'])).status, 400)
})

const eventful = `
import events from './events.js'
export default {
	name: 'eventful',
	events,
	http(server, ctx) {
		server.route({ method: 'POST', path: '/v1/eventful', handler: async (request) => {
			await ctx.emit({ event_type: 'eventful.happened', payload: request.payload })
			return {}
		} })
	},
}
`

void t.test('event types of a plugin are in the API reference and checked by the test kit', async (t) => {
	const gateway = await startGateway({
		config: 'plugins: {eventful: true}\n',
		files: {
			'plugins/eventful/index.js': eventful,
			'plugins/eventful/events.js': `export default {
				'eventful.happened': { description: 'It happened.', payload: { where: 'The place.' } },
			}`,
		},
	})
	const { body } = await gateway.request('GET', '/v1/openapi.json')
	t.match(body.paths['/v1/events/stream'].get.description, /- `eventful\.happened`: It happened\./)
	await gateway.request('POST', '/v1/eventful', { body: { where: 'here', why: 'because' } })
	await t.rejects(gateway.stop(), /eventful\.happened has the field "why", which is not declared/)
})

const refused: Record<string, { part: string; message: RegExp }> = {
	'a scope of another plugin': {
		part: `scopes: { 'vault:all': 'All' }`,
		message: /"vault:all" must begin with .* such as clock:read/,
	},
	'a scope without a description': {
		part: `scopes: { 'clock:read': '' }`,
		message: /"clock:read" needs a description/,
	},
	'scopes as a list': { part: `scopes: ['clock:read']`, message: /scopes must be an object/ },
	'a general code': {
		part: `errors: { not_found: { status: 404, description: 'x' } }`,
		message: /one of the gateway's own/,
	},
	'a code of another plugin': {
		part: `errors: { vault_open: { status: 404, description: 'x' } }`,
		message: /such as clock_failed/,
	},
	'an invalid status': {
		part: `errors: { clock_odd: { status: 200, description: 'x' } }`,
		message: /from 400 to 599/,
	},
	'an event of the gateway': {
		part: `events: { 'vault.opened': { description: 'x', payload: {} } }`,
		message: /begin yours with "clock\."/,
	},
	'an event without its fields': {
		part: `events: { 'clock.ticked': { description: 'x' } }`,
		message: /"clock.ticked" needs a description, and a payload/,
	},
	'a code without a description': {
		part: `errors: { clock_odd: { status: 400 } }`,
		message: /"clock_odd" needs a description/,
	},
}

void t.test('an invalid declaration is refused with what to change', async (t) => {
	for (const [what, { part, message }] of Object.entries(refused)) {
		const gateway = await startWith(t, 'clock', `export default { name: 'clock', ${part} }`)
		const clock = gateway.running.gateway.status.plugins().find(({ name }) => name === 'clock')
		t.match(clock, { state: 'failed', last_error: message }, what)
	}
})

const ticking = `
export default {
	name: 'ticking',
	start(ctx) {
		const state = globalThis.tickingState = { every: 0, once: 0, stopped: 0, overlap: false, refused: '', released: null }
		let isRunning = false
		ctx.defer(() => { state.released = { isRunning, every: state.every } }, 'what its timers use')
		ctx.every(1, async () => {
			state.overlap ||= isRunning
			isRunning = true
			await new Promise((resolve) => setTimeout(resolve, 3))
			isRunning = false
			if (++state.every === 2) throw new Error('the second tick fails')
		})
		ctx.after(1, () => state.once++)
		ctx.after(1, () => state.stopped++)()
		try { ctx.every(2 ** 31, () => {}) } catch (error) { state.refused = error.message }
	},
}
`

void t.test('timers of a plugin do not overlap, report errors, and end with the plugin', async (t) => {
	const gateway = await startWith(t, 'ticking', ticking)
	const { tickingState: state } = globalThis as unknown as {
		tickingState: Record<'every' | 'once' | 'stopped', number> & {
			overlap: boolean
			refused: string
			released: { isRunning: boolean; every: number } | null
		}
	}
	await eventually(
		() => state.every,
		(ticks) => ticks >= 5,
	)
	t.match(state, { once: 1, stopped: 0, overlap: false, refused: /from 1 to 2147483647, not 2147483648/ })
	const status = gateway.running.gateway.status.plugins().find(({ name }) => name === 'ticking')
	t.match(status, { state: 'failing', last_error: /the second tick fails/ })
	writeFileSync(join(gateway.home, 'config/gateway.yaml'), 'plugins: {ticking: false}\n')
	await gateway.running.gateway.reload()
	const released = await eventually(
		() => state.released,
		(one) => one !== null,
	)
	t.equal(released?.isRunning, false, 'the release waits for a call in progress')
	for (let i = 0; i < 10; i++) await gateway.request('GET', '/healthz')
	t.equal(state.every, released?.every, 'no call follows the release')
})

const breaking = (body: string): string => `
export default {
	name: 'breaking',
	http(server) {
		server.ext('onPreHandler', (request, h) => {
			if (request.path !== '/v1/health' && request.path !== '/readyz') { ${body} }
			return h.continue
		})
	},
}
`

void t.test('a hapi extension that breaks every route is reported with its plugin', async (t) => {
	for (const [body, reason] of [
		[`throw new Error('it broke')`, /its hapi extension onPreHandler failed for a request: it broke/],
		[`return`, /it returned nothing; end it with: return h\.continue/],
	] as const) {
		const gateway = await startWith(t, 'breaking', breaking(body))
		t.equal((await gateway.request('GET', '/v1/agents')).status, 500)
		t.match((await gateway.request('GET', '/readyz?verbose')).body, /\[-\]plugins .*problems with breaking/)
		const status = gateway.running.gateway.status.plugins().find(({ name }) => name === 'breaking')
		t.match(status, { state: 'failing', last_error: reason })
	}
	const refusing = breaking(`return h.response({ message: 'not now' }).code(403).takeover()`)
	const gateway = await startWith(t, 'breaking', refusing)
	t.equal((await gateway.request('GET', '/v1/agents')).status, 403)
	t.equal((await gateway.request('GET', '/readyz')).body, 'ok', 'a refusal is not a failure')
})

const measuring = (source: string): string => `
export default {
	name: 'measuring',
	start(ctx) {
		let reads = 0
		ctx.extend('metrics', ${source})
	},
}
`

void t.test('metrics of a plugin are in the scrape, and invalid ones do not affect others', async (t) => {
	const scraped = async (source: string): Promise<string> => {
		const gateway = await startWith(t, 'measuring', measuring(source))
		const { status, body } = await gateway.request('GET', '/metrics')
		t.equal(status, 200)
		t.match(body, /^svc_generation 1$/m)
		t.match(body, /^svc_runs_active 0$/m)
		return body
	}
	const good = await scraped(`{
		metrics: {
			measuring_height: { help: 'How high.', type: 'gauge' },
			measuring_steps_total: { help: 'Steps.', type: 'counter' },
			measuring_absent: { help: 'Nothing.', type: 'gauge' },
		},
		read: async () => ({ measuring_height: 1.5, measuring_steps_total: [{ labels: { side: 'left' }, value: ++reads }] }),
	}`)
	t.match(good, /# HELP measuring_height How high\.\n# TYPE measuring_height gauge\nmeasuring_height 1\.5\n/)
	t.match(good, /# TYPE measuring_steps_total counter\nmeasuring_steps_total\{side="left"\} 1\n/)
	t.notMatch(good, /measuring_absent [^N]/)
	const metric = (name: string, read: string): string =>
		`{ metrics: { ${name}: { help: 'Odd.', type: 'gauge' } }, read: () => (${read}) }`
	for (const source of [
		metric('svc_runs_active', '{ svc_runs_active: 99 }'),
		metric('measuring_odd', `{ measuring_odd: 'x' }`),
		metric('measuring_odd', `{ measuring_odd: [{ labels: { 'a b': 'x' }, value: 1 }] }`),
		metric('measuring_odd', 'undefined'),
		'7',
	])
		t.notMatch(await scraped(source), /measuring_odd|active 99/, source)
})

const older = `
export default {
	name: 'older',
	needs: ['agents'],
	config: (joi) => joi.object({ word: joi.string().default('hello') }),
	start(ctx) {
		const timer = setInterval(() => {}, 1000)
		ctx.defer(() => clearInterval(timer), 'timer')
		ctx.primitive({ name: 'older.say', description: 'Says it.', run: async (args, call) => {
			call.emit({ event_type: 'older.said', payload: { word: ctx.config.word } })
			return ctx.config.word
		} })
		return { word: () => ctx.config.word }
	},
	http(server, ctx) {
		server.route({
			method: 'GET',
			path: '/v1/older',
			options: { auth: { access: { scope: ['agents:read', '*'] } } },
			handler: () => ctx.use('older').word(),
		})
	},
}
`

void t.test('a plugin that was written for 0.1.0 runs unchanged', async (t) => {
	const gateway = await startWith(t, 'older', older)
	t.equal((await gateway.request('GET', '/v1/older')).body, 'hello')
	const ada = await follow(t, gateway, 'ada')
	t.match(await ada.read(await ada.complete('/tool older.say {}')), { answer: /hello/ })
	const { body } = await gateway.request('GET', '/v1/audit?event_type=older.said')
	t.equal(body.events.length, 1)
})
