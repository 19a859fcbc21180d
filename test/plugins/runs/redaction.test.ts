/** All places where secrets are redacted: events, journal, live text, records, jobs, responses and logs. */
import Joi from 'joi'
import t from 'tap'
import { openRun } from '../../../plugins/runs/run-log.ts'
import { Fault } from '../../../core/errors.ts'
import { openEventBus } from '../../../core/events/event-bus.ts'
import { makeServer } from '../../../core/http/server.ts'
import { openLog } from '../../../core/log/log.ts'
import { openRedactor } from '../../../core/redactor/redactor.ts'
import { openMemory } from '../../support/memory-engine.ts'
import type { ToolDefinition } from '../../../core/plugin.ts'
import { noticesOf } from '../../../core/redactor/notices.ts'
import type { EventEnvelope } from '../../../core/store/ports.ts'
import { redactingQueue, redactingStore } from '../../../core/store/redacting.ts'
import { callTool } from '../../../plugins/runs/tool-call.ts'
import type { CallSite } from '../../../plugins/runs/tool-call.ts'
import type { Answer } from '../../support/gateway.ts'
import { noPolicy } from '../../support/policy.ts'

const secret = 'hunter2hunter2'
const ada = { name: 'ada', uid: '01890000-0000-7000-8000-000000000000' }
const mark = '[redacted:KEY]'
const logger = openLog({ level: 'silent', format: 'json' })
const serverOptions = { log: logger, checkResponses: true, onlyBuiltIn: true }
const about = (event_type: string, payload: Record<string, unknown> = {}) => ({ event_type, payload })
const piece = (content: string) => about('model.stream', { content })
const notice = (sink: string, count = 1) =>
	about('security.redacted', { secret: 'KEY', secret_id: 'key-1', sink, count })

function open() {
	const redactor = openRedactor()
	const engine = openMemory()
	const bus = openEventBus(engine.log, logger, redactor)
	const events: EventEnvelope[] = []
	bus.subscribe({}, ({ event }) => events.push(event))
	return {
		redactor,
		engine,
		bus,
		addSecret: () => {
			const key = { id: 'key-1', name: 'KEY', value: secret }
			redactor.add(ada, key)
			redactor.add('gateway', key)
		},
		openRun: () => openRun(bus, { run_id: 'r1', agent_id: 'ada' }),
		/** The events that listeners have received since the last call. */
		takeEvents: () => events.splice(0).map(({ event_type, payload }) => about(event_type, payload)),
	}
}

void t.test('the events of a run contain no secret, and one notice reports the redactions', async (t) => {
	const { addSecret, openRun, takeEvents, engine, bus } = open()
	addSecret()
	const log = await openRun()
	await log.append([
		about('run.started', { trigger: 'api' }),
		about('message.user', { content: `a ${secret} ${secret}` }),
	])
	await log.append([about('message.assistant', { content: secret })])
	t.strictSame(takeEvents(), [
		about('run.started', { trigger: 'api' }),
		about('message.user', { content: `a ${mark} ${mark}` }),
		notice('event', 2),
		about('message.assistant', { content: mark }),
	])
	const events = (await bus.read({ run_id: 'r1' }, null, 100)).entries.map(({ event }) => event)
	t.strictSame(
		events.map(({ sequence, agent_id, run_id }) => [sequence, agent_id, run_id]),
		[
			[1, 'ada', 'r1'],
			[2, 'ada', 'r1'],
			[3, 'ada', 'r1'],
			[4, 'ada', 'r1'],
		],
	)
	t.notMatch(JSON.stringify((await engine.log.read({}, null, 100)).entries), secret)
})

void t.test('a step of the journal contains no secret, and the end of a run stays its last event', async (t) => {
	const { addSecret, openRun, engine } = open()
	addSecret()
	const log = await openRun()
	const step = { kind: 'tool', call_id: 'c1', ok: true, content: JSON.stringify({ value: secret }) } as const
	await log.append([about('primitive.result', { result: secret })], step)
	await log.append([about('run.failed', { error: `no ${secret}` })])
	const journal = await engine.log.journal('r1')
	t.strictSame(journal.steps, [{ ...step, content: JSON.stringify({ value: mark }) }])
	t.match(journal.lastEvent, about('run.failed', { error: `no ${mark}` }))
	const { entries } = await engine.log.read({}, null, 100)
	t.strictSame(
		entries.map(({ event }) => event.payload.sink ?? event.event_type),
		['primitive.result', 'record', 'event', 'run.failed'],
	)
	const second = open()
	second.addSecret()
	const run = await second.openRun()
	await run.append([about('run.failed', { error: secret })])
	t.strictSame(second.takeEvents(), [notice('event'), about('run.failed', { error: mark })])
})

void t.test('text that was written before the secret was created is redacted when read', async (t) => {
	const { addSecret, openRun, bus, engine } = open()
	const log = await openRun()
	await log.append([about('message.user', { content: secret })])
	addSecret()
	t.match(JSON.stringify((await engine.log.read({}, null, 9)).entries), secret, 'the log contains it')
	const { entries } = await bus.read({}, null, 9)
	t.strictSame(entries[0]?.event.payload, { content: mark })
})

void t.test('the pieces of an answer show no secret, independently of their borders', async (t) => {
	for (let border = 1; border < secret.length; border++) {
		const { addSecret, openRun, takeEvents } = open()
		addSecret()
		const log = await openRun()
		await log.append([about('model.request')])
		log.live(piece(`It is ${secret.slice(0, border)}`))
		log.live(piece(`${secret.slice(border)}, as you know`))
		await log.append([about('model.response'), about('message.assistant', { content: `It is ${secret}, as you know` })])
		const events = takeEvents()
		t.strictSame(
			events.filter(({ event_type }) => event_type === 'model.stream'),
			[piece('It is '), piece(`${mark}, as you `), piece('know')],
		)
		t.equal(events.filter(({ event_type }) => event_type === 'security.redacted').length, 2, 'one for each sink')
	}
})

void t.test('withheld text follows at the end of the answer, before later events', async (t) => {
	const { addSecret, openRun, takeEvents } = open()
	addSecret()
	const log = await openRun()
	await log.append([about('model.request')])
	log.live(piece('My dog is a hunter'))
	await log.append([about('message.user', { content: 'something else, meanwhile' })])
	await log.append([about('model.response')])
	t.strictSame(takeEvents(), [
		about('model.request'),
		piece('My dog is a '),
		about('message.user', { content: 'something else, meanwhile' }),
		piece('hunter'),
		about('model.response'),
	])
})

void t.test('the withheld text of a failed attempt is dropped', async (t) => {
	for (const cut of ['model.retry', 'model.fallback', 'model.request']) {
		const { addSecret, openRun, takeEvents } = open()
		addSecret()
		const log = await openRun()
		log.live(piece(secret.slice(0, -1)))
		await log.append([about(cut)])
		log.live(piece(secret.slice(-1)))
		log.live(piece(' is no secret'))
		await log.append([about('model.response')])
		const last = secret.slice(-1)
		t.strictSame(takeEvents(), [about(cut), piece(`${last} is no `), piece('secret'), about('model.response')])
	}
	const { addSecret, openRun, takeEvents } = open()
	addSecret()
	const log = await openRun()
	await log.append([about('model.request')])
	log.live(piece(secret.slice(0, -1)))
	log.close()
	await (await openRun()).append([about('run.stopped')])
	t.strictSame(takeEvents(), [about('model.request'), about('run.stopped')])
})

void t.test('the redaction of text for a model is reported in the run', async (t) => {
	const { addSecret, openRun, takeEvents } = open()
	addSecret()
	const log = await openRun()
	t.equal(log.redactor.text(secret, 'model'), mark)
	t.equal(log.redactor.text(secret, 'model', new Set(['key-1'])), secret)
	await log.append([about('model.request')])
	t.strictSame(takeEvents(), [notice('model'), about('model.request')])
})

void t.test('redactions within the interval are counted in the next notice', async (t) => {
	let time_ms = 0
	const { now } = performance
	t.teardown(() => (performance.now = now))
	performance.now = () => time_ms
	const reported: unknown[] = []
	const notice = noticesOf(({ payload }) => reported.push([payload.secret, payload.sink, payload.count]), 20)
	const found = { id: 'key-1', name: 'KEY', sink: 'log', count: 1 } as const
	notice(found)
	notice({ ...found, sink: 'event', count: 5 })
	time_ms = 19
	for (let n = 0; n < 3; n++) notice(found)
	t.strictSame(reported, [
		['KEY', 'log', 1],
		['KEY', 'event', 5],
	])
	time_ms = 20
	notice({ ...found, count: 2 })
	t.strictSame(reported.slice(2), [['KEY', 'log', 5]])
})

void t.test('outside of runs, each secret and sink has one notice per minute, with a count', async (t) => {
	const { addSecret, bus, takeEvents, engine, redactor } = open()
	addSecret()
	await bus.emit(about('agent.updated', { why: `${secret} ${secret}` }), 'ada')
	const store = redactingStore(engine.store, redactor)
	for (let n = 0; n < 3; n++) await store.put(['s', `k${n}`], { text: secret })
	await new Promise(setImmediate)
	await new Promise(setImmediate)
	t.strictSame(takeEvents(), [about('agent.updated', { why: `${mark} ${mark}` }), notice('event', 2), notice('record')])
})

/** Calls a tool in a run as the executor does, after the secret was created. */
async function call(run: ToolDefinition['run'], args: Record<string, unknown> = {}) {
	const opened = open()
	opened.addSecret()
	const log = await opened.openRun()
	const site: CallSite = {
		run_id: 'r1',
		agent: { name: 'ada', uid: 'uid' },
		conversation: 'c1',
		attach: () => Promise.reject(new Error('no file is expected')),
		signal: new AbortController().signal,
		log,
		ask: () => Promise.reject(new Error('nobody')),
		forModel: (text, revealed) => Promise.resolve(log.redactor.text(text, 'model', revealed)),
		result_characters: 32_768,
		policy: noPolicy,
		interrupted: false,
	}
	const tool: ToolDefinition = { name: 'test.tool', description: 'For tests.', parameters: { type: 'object' }, run }
	const request = { id: 'call-1', name: 'test.tool', arguments: JSON.stringify(args) }
	const result = await callTool([tool], request, site, logger)
	log.close()
	const stored = JSON.stringify([opened.takeEvents(), (await opened.engine.log.journal('r1')).steps])
	return { result: result.status === 'done' ? result.content : '', stored }
}

void t.test('a tool receives the secret that the model wrote, and its result is redacted', async (t) => {
	let got: unknown
	const { result, stored } = await call((args) => ({ back: (got = args.text) }), { text: secret })
	t.equal(got, secret)
	t.equal(result, JSON.stringify({ back: mark }))
	t.notMatch(stored, secret)
})

void t.test('a secret that a tool reveals to the model is not stored', async (t) => {
	const { result, stored } = await call((_args, { reveal }) => {
		reveal('key-1')
		return { secret }
	})
	t.equal(result, JSON.stringify({ secret }))
	t.notMatch(stored, secret)
	t.match(stored, /redacted:KEY/)
})

void t.test('arguments, results and errors are redacted before they are truncated', async (t) => {
	const half = secret.slice(0, 10)
	const fails = (text: string) => (): never => {
		throw new Fault('tool_failed', text)
	}
	for (const size of [16 * 1024, 64 * 1024]) {
		// The text is cut within the secret, whatever characters the JSON around it adds.
		for (const before of [-4, 0, 4, 8]) {
			const text = `${'x'.repeat(size - before - 14)}${secret}${'y'.repeat(100)}`
			for (const run of [() => text, () => ({ text }), fails(text)]) {
				const { result, stored } = await call(run, { text })
				t.notOk(stored.includes(half), `stored text, cut at ${size}`)
				t.notOk(result.includes(half), `text for the model, cut at ${size}`)
			}
		}
	}
})

void t.test('records and jobs contain no secret, independently of how they are written', async (t) => {
	const { addSecret, engine, redactor } = open()
	const store = redactingStore(engine.store, redactor)
	const queue = redactingQueue(engine.queue, redactor)
	const raw = { text: secret }
	await store.put(['s', 'early'], raw)
	t.strictSame((await store.get(['s', 'early']))?.value, raw, 'the secret does not exist yet')
	addSecret()
	await store.put(['s', 'put'], raw)
	const rev = await store.create(['s', 'create'], raw)
	await store.update(['s', 'create'], { ...raw, again: true }, rev)
	await store.commit('s', [
		{ key: ['s', 'commit'], value: raw, expect: null },
		{ key: ['s', 'early'], value: undefined },
	])
	t.strictSame(raw, { text: secret }, 'the value of the caller is not changed')
	const found: unknown[] = []
	for await (const { value } of engine.store.list(['s'])) found.push(value)
	t.strictSame(found, [{ text: mark }, { text: mark, again: true }, { text: mark }])
	await t.rejects(store.create(['s', 'put'], raw), { code: 'conflict' })

	await queue.enqueue({ id: 'j1', body: { prompt: secret } })
	t.equal(queue.waiting(), 1)
	const controller = new AbortController()
	for await (const lease of queue.claim(() => 1, controller.signal)) {
		t.strictSame(lease.job, { id: 'j1', body: { prompt: mark } })
		await lease.ack()
		controller.abort()
	}
})

void t.test(
	'the owners of a record are not redacted, so that an agent named like a secret keeps its runs',
	async (t) => {
		const { addSecret, redactor, engine } = open()
		addSecret()
		const store = redactingStore(engine.store, redactor)
		const owners = {
			agent: `${secret}-bot`,
			agent_uid: '01890000-0000-7000-8000-000000000000',
			conversation: `main:${secret}`,
			run_id: 'r1',
		}
		await store.put(['a', 'run'], { ...owners, prompt: secret, nested: { agent: secret } })
		t.strictSame((await engine.store.get(['a', 'run']))?.value, { ...owners, prompt: mark, nested: { agent: mark } })
		await store.put(['a', 'notes'], { agent: secret, run_id: secret, uid: secret })
		t.strictSame(
			(await engine.store.get(['a', 'notes']))?.value,
			{ agent: mark, run_id: mark, uid: mark },
			'notes of a model are redacted completely',
		)
		await store.put(['a', 'text'], `a ${secret}`)
		t.equal((await engine.store.get(['a', 'text']))?.value, `a ${mark}`)
	},
)

void t.test('an error repeats at most 200 characters of the request, and nothing of an unknown path', async (t) => {
	const server = makeServer('http://test.invalid', { ...serverOptions, redactor: openRedactor() })
	const refuse = ({ params }: { params: { name?: string } }): never => {
		const name = params.name ?? ''
		throw new Fault('not_found', `there is no "${name}"`, {
			errors: [{ path: 'name', message: `${name} is unknown` }],
		})
	}
	const payload = Joi.object({ name: Joi.string().pattern(/^a+$/), kind: Joi.string().valid('x') })
	server.route([
		{ method: 'GET', path: '/things/{name}', handler: refuse },
		{ method: 'POST', path: '/things', options: { validate: { payload } }, handler: () => 'fine' },
		{
			method: 'POST',
			path: '/refused',
			handler: ({ payload: { text } }: { payload: { text: string } }): never => {
				throw new Fault('invalid_request', `"${text}" is not taken`)
			},
		},
	])
	await server.initialize()
	t.teardown(() => server.stop())
	const ask = async (url: string, payload?: object): Promise<Answer> =>
		JSON.parse((await server.inject({ url, method: payload ? 'POST' : 'GET', ...(payload && { payload }) })).payload)
	const rest = 'x'.repeat(194)
	const nowhere = await ask(`/a/${secret}`)
	t.match(nowhere, { code: 'not_found', message: /^there is no GET at this path/ })
	t.notMatch(JSON.stringify(nowhere), secret)
	t.match(await ask(`/things/${rest}${rest}$&`), {
		message: `there is no "${rest}xxxxxx…"`,
		errors: [{ message: `${rest}xxxxxx… is unknown` }],
	})
	t.equal((await ask('/refused', { text: 'y'.repeat(300) })).message, `"${'y'.repeat(200)}…" is not taken`)
	const long = 'z'.repeat(1_000)
	const keys = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`${n} ${long}`, 1]))
	const { message, errors } = await ask('/things', { ...keys, name: long, kind: long })
	t.ok(message.length < 900, message)
	t.notMatch(message, 'z'.repeat(65))
	t.strictSame(
		errors.map(({ path, message }: { path: string; message: string }) => `${path}: ${message}`.slice(0, 60)),
		[
			'name: name fails to match the required pattern: /^a+$/',
			'kind: kind must be [x]',
			...[0, 1, 2, 3, 4].map((n) => `${n} ${'z'.repeat(58)}`),
			': 25 more keys are not allowed',
		],
	)
})

void t.test('HTTP responses are not redacted, and name secrets only to callers that can list them', async (t) => {
	const { addSecret, redactor } = open()
	addSecret()
	redactor.showNamesTo('vault:read')
	const server = makeServer('http://test.invalid', { ...serverOptions, redactor })
	const raw = { text: `a ${secret} ${mark}`, list: [mark] }
	server.auth.scheme('test', () => ({
		authenticate: ({ headers }, h) =>
			h.authenticated({ credentials: { scope: [headers['x-scope'] ?? 'none'] } as never }),
	}))
	server.auth.strategy('test', 'test')
	server.auth.default('test')
	server.route([
		{ method: 'GET', path: '/object', handler: () => raw },
		{ method: 'GET', path: '/text', handler: () => mark },
		{ method: 'GET', path: '/open', options: { auth: false }, handler: () => mark },
		{
			method: 'GET',
			path: '/fault',
			handler: () => {
				throw new Fault('invalid_request', `not ${mark}`)
			},
		},
	])
	await server.initialize()
	t.teardown(() => server.stop())
	const ask = async (url: string, scope: string): Promise<string> =>
		(await server.inject({ url, headers: { 'x-scope': scope } })).payload
	const names = { '/object': JSON.stringify(raw), '/text': mark, '/fault': `not ${mark}` }
	for (const [url, body] of Object.entries(names)) {
		for (const scope of ['*', 'vault:read']) t.ok((await ask(url, scope)).includes(body), `${url} ${scope}`)
		const hidden = await ask(url, 'agents:read')
		t.ok(hidden.includes(body.replaceAll(mark, '[redacted]')), hidden)
	}
	t.equal(await ask('/open', '*'), '[redacted]')
	t.strictSame(raw.list, [mark], 'the value of the handler is not changed')
})

void t.test('a line in the pretty format contains no secret, even if the redaction breaks its JSON', async (t) => {
	const { redactor, addSecret } = open()
	const lines: string[] = []
	const { isTTY } = process.stderr
	const write = process.stderr.write.bind(process.stderr)
	const restore = (): void => void Object.assign(process.stderr, { write, isTTY })
	Object.assign(process.stderr, { write: (text: unknown) => lines.push(String(text)), isTTY: true })
	t.teardown(restore)
	const log = openLog({ level: 'trace', format: 'pretty' }, redactor)
	addSecret()
	log.child({ plugin: 'x' }).trace({ err: new Error(`no ${secret}`), deep: { a: [secret] } }, `at ${secret}`)
	redactor.add('gateway', { id: 'odd', name: 'ODD', value: '"msg":"behind' })
	log.info('behind it')
	restore()
	t.match(lines[0], new RegExp(String.raw`trace at \[redacted:KEY\]  plugin=x`))
	t.notMatch(lines.join(''), secret)
	t.match(lines[1], /\[redacted:ODD\] it/)
})
