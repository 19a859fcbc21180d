/** Where the redactor stands: events, journal, live text, records, jobs, answers, logs. */
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
		know: () => {
			const key = { id: 'key-1', name: 'KEY', value: secret }
			redactor.add(ada, key)
			redactor.add('gateway', key)
		},
		openRun: () => openRun(bus, { run_id: 'r1', agent_id: 'ada' }),
		/** What listeners heard, taken away. */
		heard: () => events.splice(0).map(({ event_type, payload }) => about(event_type, payload)),
	}
}

void t.test('the events of a run hold no secret, and tell once what was taken out of them', async (t) => {
	const { know, openRun, heard, engine, bus } = open()
	know()
	const log = await openRun()
	await log.append([
		about('run.started', { trigger: 'api' }),
		about('message.user', { content: `a ${secret} ${secret}` }),
	])
	await log.append([about('message.assistant', { content: secret })])
	t.strictSame(heard(), [
		about('run.started', { trigger: 'api' }),
		about('message.user', { content: `a ${mark} ${mark}` }),
		notice('event', 2),
		about('message.assistant', { content: mark }),
	])
	const kept = (await bus.read({ run_id: 'r1' }, null, 100)).entries.map(({ event }) => event)
	t.strictSame(
		kept.map(({ sequence, agent_id, run_id }) => [sequence, agent_id, run_id]),
		[
			[1, 'ada', 'r1'],
			[2, 'ada', 'r1'],
			[3, 'ada', 'r1'],
			[4, 'ada', 'r1'],
		],
	)
	t.notMatch(JSON.stringify((await engine.log.read({}, null, 100)).entries), secret)
})

void t.test('a step of the journal holds none; what ends or pauses a run stays its last event', async (t) => {
	const { know, openRun, engine } = open()
	know()
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
	const other = open()
	other.know()
	const late = await other.openRun()
	await late.append([about('run.failed', { error: secret })])
	t.strictSame(other.heard(), [notice('event'), about('run.failed', { error: mark })])
})

void t.test('what was written before the secret was known is read without it', async (t) => {
	const { know, openRun, bus, engine } = open()
	const log = await openRun()
	await log.append([about('message.user', { content: secret })])
	know()
	t.match(JSON.stringify((await engine.log.read({}, null, 9)).entries), secret, 'it is there')
	const { entries } = await bus.read({}, null, 9)
	t.strictSame(entries[0]?.event.payload, { content: mark })
})

void t.test('an answer in the making shows no secret, wherever its pieces end', async (t) => {
	for (let border = 1; border < secret.length; border++) {
		const { know, openRun, heard } = open()
		know()
		const log = await openRun()
		await log.append([about('model.request')])
		log.live(piece(`It is ${secret.slice(0, border)}`))
		log.live(piece(`${secret.slice(border)}, as you know`))
		await log.append([about('model.response'), about('message.assistant', { content: `It is ${secret}, as you know` })])
		const told = heard()
		t.strictSame(
			told.filter((one) => one.event_type === 'model.stream'),
			[piece('It is '), piece(`${mark}, as you `), piece('know')],
		)
		t.equal(told.filter((one) => one.event_type === 'security.redacted').length, 2, 'one for each sink')
	}
})

void t.test('what was held back comes with the end of the answer, ahead of what follows it', async (t) => {
	const { know, openRun, heard } = open()
	know()
	const log = await openRun()
	await log.append([about('model.request')])
	log.live(piece('My dog is a hunter'))
	await log.append([about('message.user', { content: 'something else, meanwhile' })])
	await log.append([about('model.response')])
	t.strictSame(heard(), [
		about('model.request'),
		piece('My dog is a '),
		about('message.user', { content: 'something else, meanwhile' }),
		piece('hunter'),
		about('model.response'),
	])
})

void t.test('an answer that breaks off takes with it what was held back, and the next one begins anew', async (t) => {
	for (const cut of ['model.retry', 'model.fallback', 'model.request']) {
		const { know, openRun, heard } = open()
		know()
		const log = await openRun()
		log.live(piece(secret.slice(0, -1)))
		await log.append([about(cut)])
		log.live(piece(secret.slice(-1)))
		log.live(piece(' is no secret'))
		await log.append([about('model.response')])
		const last = secret.slice(-1)
		t.strictSame(heard(), [about(cut), piece(`${last} is no `), piece('secret'), about('model.response')])
	}
	const { know, openRun, heard } = open()
	know()
	const log = await openRun()
	await log.append([about('model.request')])
	log.live(piece(secret.slice(0, -1)))
	log.close()
	await (await openRun()).append([about('run.stopped')])
	t.strictSame(heard(), [about('model.request'), about('run.stopped')])
})

void t.test('text of a run that goes elsewhere is told of in that run', async (t) => {
	const { know, openRun, heard } = open()
	know()
	const log = await openRun()
	t.equal(log.redactor.text(secret, 'model'), mark)
	t.equal(log.redactor.text(secret, 'model', new Set(['key-1'])), secret)
	await log.append([about('model.request')])
	t.strictSame(heard(), [notice('model'), about('model.request')])
})

void t.test('of what comes soon after, only the count is told, with the next notice', async (t) => {
	const told: unknown[] = []
	const notice = noticesOf(({ payload }) => told.push([payload.secret, payload.sink, payload.count]), 20)
	const began = performance.now()
	const found = { id: 'key-1', name: 'KEY', sink: 'log', count: 1 } as const
	notice(found)
	notice({ ...found, sink: 'event', count: 5 })
	for (let n = 0; n < 3; n++) notice(found)
	while (performance.now() - began < 100);
	notice({ ...found, count: 2 })
	const logged = told.filter((one) => (one as unknown[])[1] === 'log').map((one) => (one as unknown[])[2] as number)
	t.equal(
		logged.reduce((sum, count) => sum + count),
		6,
	)
	t.ok(logged.length <= 3, String(logged))
	t.strictSame(told[1], ['KEY', 'event', 5])
})

void t.test(
	'outside of runs it is told once a minute for each secret and sink, with the count since then',
	async (t) => {
		const { know, bus, heard, engine, redactor } = open()
		know()
		await bus.emit(about('agent.updated', { why: `${secret} ${secret}` }), 'ada')
		const store = redactingStore(engine.store, redactor)
		for (let n = 0; n < 3; n++) await store.put(['s', `k${n}`], { text: secret })
		await new Promise(setImmediate)
		await new Promise(setImmediate)
		t.strictSame(heard(), [about('agent.updated', { why: `${mark} ${mark}` }), notice('event', 2), notice('record')])
	},
)

/** Calls a tool in a run with the secret known, as the executor does. */
async function call(run: ToolDefinition['run'], args: Record<string, unknown> = {}) {
	const world = open()
	world.know()
	const log = await world.openRun()
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
	const kept = JSON.stringify([world.heard(), (await world.engine.log.journal('r1')).steps])
	return { result: result.status === 'done' ? result.content : '', kept }
}

void t.test('a tool gets the secret that the model wrote, and its result goes without it', async (t) => {
	let got: unknown
	const { result, kept } = await call((args) => ({ back: (got = args.text) }), { text: secret })
	t.equal(got, secret)
	t.equal(result, JSON.stringify({ back: mark }))
	t.notMatch(kept, secret)
})

void t.test('what a tool gives out to the model this once is kept nowhere else', async (t) => {
	const { result, kept } = await call((_args, { reveal }) => {
		reveal('key-1')
		return { secret }
	})
	t.equal(result, JSON.stringify({ secret }))
	t.notMatch(kept, secret)
	t.match(kept, /redacted:KEY/)
})

void t.test('arguments, results and errors that are cut are cut behind the redactor', async (t) => {
	const half = secret.slice(0, 10)
	const fails = (text: string) => (): never => {
		throw new Fault('tool_failed', text)
	}
	for (const size of [16 * 1024, 64 * 1024]) {
		// The secret lies across the place of the cut, whatever stands around the text.
		for (const before of [-4, 0, 4, 8]) {
			const text = `${'x'.repeat(size - before - 14)}${secret}${'y'.repeat(100)}`
			for (const run of [() => text, () => ({ text }), fails(text)]) {
				const { result, kept } = await call(run, { text })
				t.notOk(kept.includes(half), `kept, cut at ${size}`)
				t.notOk(result.includes(half), `to the model, cut at ${size}`)
			}
		}
	}
})

void t.test('records and jobs hold none, by whichever way they are written', async (t) => {
	const { know, engine, redactor } = open()
	const store = redactingStore(engine.store, redactor)
	const queue = redactingQueue(engine.queue, redactor)
	const raw = { text: secret }
	await store.put(['s', 'early'], raw)
	t.strictSame((await store.get(['s', 'early']))?.value, raw, 'not yet known')
	know()
	await store.put(['s', 'put'], raw)
	const rev = await store.create(['s', 'create'], raw)
	await store.update(['s', 'create'], { ...raw, again: true }, rev)
	await store.commit('s', [
		{ key: ['s', 'commit'], value: raw, expect: null },
		{ key: ['s', 'early'], value: undefined },
	])
	t.strictSame(raw, { text: secret }, 'what was given is not changed')
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

void t.test('what a record belongs to stays whole, so that an agent named like a secret keeps its runs', async (t) => {
	const { know, redactor, engine } = open()
	know()
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
		'notes of a model',
	)
	await store.put(['a', 'text'], `a ${secret}`)
	t.equal((await engine.store.get(['a', 'text']))?.value, `a ${mark}`)
})

void t.test(
	'an error repeats at most 200 characters of what was sent, and nothing where nobody is asked who sent it',
	async (t) => {
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
	},
)

void t.test('answers over HTTP are not redacted, and name secrets only to those who may list them', async (t) => {
	const { know, redactor } = open()
	know()
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
	t.strictSame(raw.list, [mark], 'what the handler answered is not changed')
})

void t.test('a line for people holds none either, also where it is no JSON any more', async (t) => {
	const { redactor, know } = open()
	const lines: string[] = []
	const write = process.stderr.write.bind(process.stderr)
	process.stderr.write = (text: unknown) => lines.push(String(text)) > 0
	t.teardown(() => (process.stderr.write = write))
	const log = openLog({ level: 'trace', format: 'pretty' }, redactor)
	know()
	log.child({ plugin: 'x' }).trace({ err: new Error(`no ${secret}`), deep: { a: [secret] } }, `at ${secret}`)
	redactor.add('gateway', { id: 'odd', name: 'ODD', value: '"msg":"behind' })
	log.info('behind it')
	process.stderr.write = write
	t.match(lines[0], new RegExp(String.raw`trace at \[redacted:KEY\]  plugin=x`))
	t.notMatch(lines.join(''), secret)
	t.match(lines[1], /\[redacted:ODD\] it/)
})
