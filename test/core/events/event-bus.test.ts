import t from 'tap'
import { openRun } from '../../../plugins/runs/run-log.ts'
import { openEventBus } from '../../../core/events/event-bus.ts'
import { isOfType } from '../../../core/store/events.ts'
import type { Delivery, EventBus } from '../../../core/events/event-bus.ts'
import { openLog } from '../../../core/log/log.ts'
import { openMemory } from '../../support/memory-engine.ts'
import type { EventLog } from '../../../core/store/ports.ts'

const logger = openLog({ level: 'silent', format: 'json' })

function open(): { bus: EventBus & Disposable; log: EventLog } {
	const { log } = openMemory()
	return { bus: openEventBus(log, logger), log }
}

const about = (event_type: string, payload: Record<string, unknown> = {}) => ({ event_type, payload })
const typesOf = (heard: Delivery[]): string[] => heard.map(({ event }) => event.event_type)

void t.test('an event of the gateway has no agent, no run and the sequence 0', async (t) => {
	const { bus } = open()
	const heard: Delivery[] = []
	bus.subscribe({}, (one) => heard.push(one))
	await bus.emit(about('gateway.started', { version: '1' }))
	t.match(heard[0]?.event, { agent_id: null, run_id: null, sequence: 0, payload: { version: '1' } })
	t.match(heard[0]?.event.event_id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
})

void t.test('an event of an agent outside a run names the agent', async (t) => {
	const { bus } = open()
	const heard: Delivery[] = []
	bus.subscribe({ agent_id: 'ada' }, (one) => heard.push(one))
	await bus.emit(about('agent.created'), 'ada')
	await bus.emit(about('agent.created'), 'bob')
	t.match(heard, [{ event: { agent_id: 'ada', run_id: null, sequence: 0 } }])
	t.equal(heard.length, 1)
})

void t.test('an emitted event is in the log before anybody hears it', async (t) => {
	const { bus, log } = open()
	const found: Promise<boolean>[] = []
	bus.subscribe({}, ({ cursor }) => {
		const page = log.read({}, null, 10)
		found.push(page.then(({ entries }) => entries.some((entry) => entry.cursor === cursor)))
	})
	await bus.emit(about('one'))
	await bus.emit(about('two'))
	t.same(await Promise.all(found), [true, true])
})

void t.test('listeners hear what their filter lets through and nothing else', async (t) => {
	const { bus } = open()
	const filters = {
		all: {},
		agent: { agent_id: 'ada' },
		run: { run_id: 'r1' },
		both: { agent_id: 'bob', run_id: 'r1' },
		family: { types: ['message.*'] },
		list: { types: ['run.started', 'message.user'] },
		agentAndType: { agent_id: 'bob', types: ['run.started'] },
	}
	const heard = Object.fromEntries(Object.keys(filters).map((name) => [name, [] as string[]]))
	for (const [name, filter] of Object.entries(filters))
		bus.subscribe(filter, ({ event }) => heard[name]?.push(`${event.run_id ?? '-'} ${event.event_type}`))

	const r1 = await openRun(bus, { run_id: 'r1', agent_id: 'ada' })
	const r2 = await openRun(bus, { run_id: 'r2', agent_id: 'bob' })
	await r1.append([about('run.started'), about('message.user')])
	await r2.append([about('run.started')])
	r2.live(about('model.stream'))
	await r2.append([about('message.assistant')])
	await bus.emit(about('messages.odd'))

	t.same(heard, {
		all: [
			'r1 run.started',
			'r1 message.user',
			'r2 run.started',
			'r2 model.stream',
			'r2 message.assistant',
			'- messages.odd',
		],
		agent: ['r1 run.started', 'r1 message.user'],
		run: ['r1 run.started', 'r1 message.user'],
		both: [],
		family: ['r1 message.user', 'r2 message.assistant'],
		list: ['r1 run.started', 'r1 message.user', 'r2 run.started'],
		agentAndType: ['r2 run.started'],
	})
})

void t.test('a listener that left hears nothing more, not even the event that others are just hearing', async (t) => {
	const { bus } = open()
	let heard = 0
	const leaving: (() => void)[] = []
	bus.subscribe({}, () => {
		for (const leave of leaving) leave()
	})
	leaving.push(bus.subscribe({}, () => heard++))
	await bus.emit(about('one'))
	t.equal(heard, 0)
})

void t.test('a listener that comes while others hear an event does not hear that one', async (t) => {
	const { bus } = open()
	const late: Delivery[] = []
	let came = false
	bus.subscribe({}, () => {
		if (!came) bus.subscribe({}, (one) => late.push(one))
		came = true
	})
	await bus.emit(about('one'))
	await bus.emit(about('two'))
	t.same(typesOf(late), ['two'])
})

void t.test('one listener leaving leaves the others of the same run and agent alone', async (t) => {
	const { bus } = open()
	const heard: string[] = []
	const leave = bus.subscribe({ run_id: 'r1' }, () => heard.push('left'))
	bus.subscribe({ run_id: 'r1' }, () => heard.push('run'))
	bus.subscribe({ agent_id: 'ada' }, () => heard.push('agent'))
	leave()
	leave()
	const run = await openRun(bus, { run_id: 'r1', agent_id: 'ada' }, true)
	await run.append([about('run.started')])
	t.same(heard, ['run', 'agent'])
})

void t.test('a listener that throws keeps nobody else from hearing', async (t) => {
	const { bus } = open()
	const heard: Delivery[] = []
	bus.subscribe({}, () => {
		throw new Error('broken')
	})
	bus.subscribe({}, (one) => heard.push(one))
	await bus.emit(about('one'))
	await bus.emit(about('two'))
	t.same(typesOf(heard), ['one', 'two'])
})

void t.test('a delivery says where to go on, and reading from there gives what came behind it', async (t) => {
	const { bus } = open()
	const heard: Delivery[] = []
	bus.subscribe({}, (one) => heard.push(one))
	const run = await openRun(bus, { run_id: 'r1', agent_id: 'ada' }, true)
	await run.append([about('a'), about('b'), about('c')])
	await run.append([about('d')])
	for (const [index, { cursor }] of heard.entries()) {
		const { entries } = await bus.read({}, cursor, 10)
		t.same(
			entries.map(({ event }) => event.event_type),
			['a', 'b', 'c', 'd'].slice(index + 1),
		)
	}
	t.equal(bus.head(), heard.at(-1)?.cursor)
})

void t.test('an event that is not kept goes out with the position of what was kept before it', async (t) => {
	const { bus } = open()
	const heard: Delivery[] = []
	bus.subscribe({}, (one) => heard.push(one))
	const run = await openRun(bus, { run_id: 'r1', agent_id: 'ada' }, true)
	void run.append([about('model.request')])
	run.live(about('model.stream'))
	await run.append([about('model.response')])
	t.same(typesOf(heard), ['model.request', 'model.stream', 'model.response'])
	t.equal(heard[1]?.cursor, heard[0]?.cursor)
	t.same(
		(await bus.read({}, null, 10)).entries.map(({ event }) => event.event_type),
		['model.request', 'model.response'],
	)
})

void t.test('the JSON of a delivery is made once for all listeners', async (t) => {
	const { bus } = open()
	const made: string[] = []
	let looked = 0
	const payload = {
		toJSON() {
			looked++
			return { seen: looked }
		},
	}
	bus.subscribe({}, (one) => made.push(one.json()))
	bus.subscribe({}, (one) => made.push(one.json(), one.json()))
	const run = await openRun(bus, { run_id: 'r1', agent_id: 'ada' }, true)
	run.live(about('model.stream', payload))
	await run.append([about('end')])
	t.match(made[0], /"payload":\{"seen":1\}/)
	t.same(made.slice(0, 3), [made[0], made[0], made[0]])
})

void t.test('a disposed bus delivers nothing more', async (t) => {
	const { bus, log } = open()
	const heard: Delivery[] = []
	bus.subscribe({}, (one) => heard.push(one))
	bus[Symbol.dispose]()
	await openEventBus(log, logger).emit(about('one'))
	t.same(heard, [])
})

void t.test('a type belongs to itself, to its family and to everything', async (t) => {
	for (const wanted of ['message.user', 'message.*', '*']) t.ok(isOfType('message.user', wanted), wanted)
	for (const wanted of ['message.use', 'user', 'message', 'run.*']) t.notOk(isOfType('message.user', wanted), wanted)
	t.notOk(isOfType('messages.user', 'message.*'))
	t.notOk(isOfType('message', 'message.*'))
})
