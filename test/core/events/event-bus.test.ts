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
const typesOf = (received: Delivery[]): string[] => received.map(({ event }) => event.event_type)

void t.test('an event of the gateway has no agent, no run and the sequence 0', async (t) => {
	const { bus } = open()
	const received: Delivery[] = []
	bus.subscribe({}, (one) => received.push(one))
	await bus.emit(about('gateway.started', { version: '1' }))
	t.match(received[0]?.event, { agent_id: null, run_id: null, sequence: 0, payload: { version: '1' } })
	t.match(received[0]?.event.event_id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
})

void t.test('an event of an agent outside a run names the agent', async (t) => {
	const { bus } = open()
	const received: Delivery[] = []
	bus.subscribe({ agent_id: 'ada' }, (one) => received.push(one))
	await bus.emit(about('agent.created'), 'ada')
	await bus.emit(about('agent.created'), 'bob')
	t.match(received, [{ event: { agent_id: 'ada', run_id: null, sequence: 0 } }])
	t.equal(received.length, 1)
})

void t.test('an event is in the log before it is delivered', async (t) => {
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

void t.test('a subscriber receives only the events that match its filter', async (t) => {
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
	const received = Object.fromEntries(Object.keys(filters).map((name) => [name, [] as string[]]))
	for (const [name, filter] of Object.entries(filters))
		bus.subscribe(filter, ({ event }) => received[name]?.push(`${event.run_id ?? '-'} ${event.event_type}`))

	const r1 = await openRun(bus, { run_id: 'r1', agent_id: 'ada' })
	const r2 = await openRun(bus, { run_id: 'r2', agent_id: 'bob' })
	await r1.append([about('run.started'), about('message.user')])
	await r2.append([about('run.started')])
	r2.live(about('model.stream'))
	await r2.append([about('message.assistant')])
	await bus.emit(about('messages.odd'))

	t.same(received, {
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

void t.test('an unsubscribed listener receives nothing more, not even the event being delivered', async (t) => {
	const { bus } = open()
	let received = 0
	let unsubscribe = (): void => {}
	bus.subscribe({}, () => unsubscribe())
	unsubscribe = bus.subscribe({}, () => received++)
	await bus.emit(about('one'))
	t.equal(received, 0)
})

void t.test('a listener that subscribes during a delivery does not receive that event', async (t) => {
	const { bus } = open()
	const late: Delivery[] = []
	let isSubscribed = false
	bus.subscribe({}, () => {
		if (!isSubscribed) bus.subscribe({}, (one) => late.push(one))
		isSubscribed = true
	})
	await bus.emit(about('one'))
	await bus.emit(about('two'))
	t.same(typesOf(late), ['two'])
})

void t.test('unsubscribing one listener does not affect others of the same run and agent', async (t) => {
	const { bus } = open()
	const received: string[] = []
	const unsubscribe = bus.subscribe({ run_id: 'r1' }, () => received.push('unsubscribed'))
	bus.subscribe({ run_id: 'r1' }, () => received.push('run'))
	bus.subscribe({ agent_id: 'ada' }, () => received.push('agent'))
	unsubscribe()
	unsubscribe()
	const run = await openRun(bus, { run_id: 'r1', agent_id: 'ada' }, true)
	await run.append([about('run.started')])
	t.same(received, ['run', 'agent'])
})

void t.test('a listener that throws does not affect the others', async (t) => {
	const { bus } = open()
	const received: Delivery[] = []
	bus.subscribe({}, () => {
		throw new Error('broken')
	})
	bus.subscribe({}, (one) => received.push(one))
	await bus.emit(about('one'))
	await bus.emit(about('two'))
	t.same(typesOf(received), ['one', 'two'])
})

void t.test('reading from the cursor of a delivery returns the events after it', async (t) => {
	const { bus } = open()
	const received: Delivery[] = []
	bus.subscribe({}, (one) => received.push(one))
	const run = await openRun(bus, { run_id: 'r1', agent_id: 'ada' }, true)
	await run.append([about('a'), about('b'), about('c')])
	await run.append([about('d')])
	for (const [index, { cursor }] of received.entries()) {
		const { entries } = await bus.read({}, cursor, 10)
		t.same(
			entries.map(({ event }) => event.event_type),
			['a', 'b', 'c', 'd'].slice(index + 1),
		)
	}
	t.equal(bus.head(), received.at(-1)?.cursor)
})

void t.test('a live event that is not stored has the cursor of the stored event before it', async (t) => {
	const { bus } = open()
	const received: Delivery[] = []
	bus.subscribe({}, (one) => received.push(one))
	const run = await openRun(bus, { run_id: 'r1', agent_id: 'ada' }, true)
	void run.append([about('model.request')])
	run.live(about('model.stream'))
	await run.append([about('model.response')])
	t.same(typesOf(received), ['model.request', 'model.stream', 'model.response'])
	t.equal(received[1]?.cursor, received[0]?.cursor)
	t.same(
		(await bus.read({}, null, 10)).entries.map(({ event }) => event.event_type),
		['model.request', 'model.response'],
	)
})

void t.test('the JSON of a delivery is built once for all listeners', async (t) => {
	const { bus } = open()
	const texts: string[] = []
	let count = 0
	const payload = { toJSON: () => ({ count: ++count }) }
	bus.subscribe({}, (one) => texts.push(one.json()))
	bus.subscribe({}, (one) => texts.push(one.json(), one.json()))
	const run = await openRun(bus, { run_id: 'r1', agent_id: 'ada' }, true)
	run.live(about('model.stream', payload))
	await run.append([about('end')])
	t.match(texts[0], /"payload":\{"count":1\}/)
	t.same(texts.slice(0, 3), [texts[0], texts[0], texts[0]])
})

void t.test('a disposed bus delivers nothing more', async (t) => {
	const { bus, log } = open()
	const received: Delivery[] = []
	bus.subscribe({}, (one) => received.push(one))
	bus[Symbol.dispose]()
	await openEventBus(log, logger).emit(about('one'))
	t.same(received, [])
})

void t.test('a type matches itself, its family and everything', async (t) => {
	for (const wanted of ['message.user', 'message.*', '*']) t.ok(isOfType('message.user', wanted), wanted)
	for (const wanted of ['message.use', 'user', 'message', 'run.*']) t.notOk(isOfType('message.user', wanted), wanted)
	t.notOk(isOfType('messages.user', 'message.*'))
	t.notOk(isOfType('message', 'message.*'))
})
