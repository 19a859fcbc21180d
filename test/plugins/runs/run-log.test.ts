import t from 'tap'
import { Fault } from '../../../core/errors.ts'
import { openEventBus } from '../../../core/events/event-bus.ts'
import type { Delivery, EventBus } from '../../../core/events/event-bus.ts'
import { openLog } from '../../../core/log/log.ts'
import { openRun } from '../../../plugins/runs/run-log.ts'
import type { RunLog } from '../../../plugins/runs/run-log.ts'
import { openMemory } from '../../support/memory-engine.ts'
import { openRedactor } from '../../../core/redactor/redactor.ts'
import type { Redactor } from '../../../core/redactor/redactor.ts'
import type { EventLog, Store } from '../../../core/store/ports.ts'

const logger = openLog({ level: 'silent', format: 'json' })
const about = (event_type: string, payload: Record<string, unknown> = {}) => ({ event_type, payload })
const run = { run_id: 'r1', agent_id: 'ada' }

interface Bench {
	bus: EventBus
	log: EventLog
	store: Store
	redactor: Redactor
	delivered: Delivery[]
	/** The number of entries of each append. */
	appends: number[]
	open(): Promise<RunLog>
}

/** A bus with the in-memory log. `before` runs before each append, and can delay it or make it fail. */
function bench(before: (append: number) => Promise<void> | void = () => {}): Bench {
	const { log, store } = openMemory()
	const appends: number[] = []
	const spied: EventLog = {
		...log,
		async append(name, expectedLast, entries, change) {
			appends.push(entries.length)
			await before(appends.length)
			return log.append(name, expectedLast, entries, change)
		},
	}
	const redactor = openRedactor()
	const bus = openEventBus(spied, logger, redactor)
	const delivered: Delivery[] = []
	bus.subscribe({}, (delivery) => delivered.push(delivery))
	return { bus, log, store, redactor, delivered, appends, open: () => openRun(bus, run) }
}

const typesOf = (deliveries: Delivery[]): string[] => deliveries.map(({ event }) => event.event_type)
const sequences = (deliveries: Delivery[]): number[] => deliveries.map(({ event }) => event.sequence)

void t.test('the sequence of a run begins at 1 and increases by one, live events included', async (t) => {
	const { delivered, open } = bench()
	const log = await open()
	void log.append([about('run.started'), about('model.request')])
	log.live(about('model.stream'))
	log.live(about('model.stream'))
	await log.append([about('model.response')])
	t.same(sequences(delivered), [1, 2, 3, 4, 5])
	t.ok(delivered.every(({ event }) => event.run_id === 'r1' && event.agent_id === 'ada'))
})

void t.test('appends in one turn of the event loop are written as one', async (t) => {
	const { appends, open } = bench()
	const log = await open()
	await Promise.all([log.append([about('a')]), log.append([about('b'), about('c')]), log.append([about('d')])])
	t.same(appends, [4])
})

void t.test('appends during a write are written as one after it', async (t) => {
	const gate = Promise.withResolvers<void>()
	const { appends, delivered, open } = bench((append) => (append === 1 ? gate.promise : undefined))
	const log = await open()
	const done = [log.append([about('a')])]
	await new Promise(setImmediate)
	for (const type of ['b', 'c', 'd']) done.push(log.append([about(type)]))
	t.same(appends, [1])
	gate.resolve()
	await Promise.all(done)
	t.same(appends, [1, 3])
	t.same(typesOf(delivered), ['a', 'b', 'c', 'd'])
})

void t.test('a live event waits for earlier appends, and later appends wait for it', async (t) => {
	const gate = Promise.withResolvers<void>()
	const { delivered, open } = bench((append) => (append === 1 ? gate.promise : undefined))
	const log = await open()
	void log.append([about('model.request')])
	log.live(about('model.stream'))
	const response = log.append([about('model.response')])
	await new Promise(setImmediate)
	t.same(delivered, [])
	gate.resolve()
	await response
	t.same(typesOf(delivered), ['model.request', 'model.stream', 'model.response'])
})

void t.test('an append settles once its events are in the log', async (t) => {
	const { log: store, open } = bench()
	const log = await open()
	for (const type of ['a', 'b', 'c']) {
		await log.append([about(type)])
		t.equal((await store.journal('r1')).lastEvent?.event_type, type)
	}
})

void t.test('the journal returns the steps in order', async (t) => {
	const { open } = bench()
	const first = await open()
	await first.append([about('run.started')])
	await first.append([about('a'), about('b')], { kind: 'begun', call_id: '1' })
	await first.append([about('c')], { kind: 'tool', call_id: '1', ok: true, content: 'x' })
	first.close()
	const { journal } = await open()
	t.same(journal.steps, [
		{ kind: 'begun', call_id: '1' },
		{ kind: 'tool', call_id: '1', ok: true, content: 'x' },
	])
	t.equal(journal.last, 4)
	t.equal(journal.lastEvent?.event_type, 'c')
})

void t.test('the journal includes appended events and steps', async (t) => {
	const { open } = bench()
	const log = await open()
	const first = log.append([about('run.started')])
	t.match(log.journal, { last: 0, lastEvent: undefined, steps: [] }, 'an event is included once it is durable')
	await first
	await log.append([about('a'), about('run.resumed')], { kind: 'restart' })
	t.match(log.journal, { last: 3, lastEvent: { event_type: 'run.resumed' }, steps: [{ kind: 'restart' }] })
})

void t.test('a change of records is written with its events and earlier appends', async (t) => {
	const { appends, store, bus, open } = bench()
	const log = await open()
	const read: unknown[] = []
	bus.subscribe({ types: ['b'] }, () => read.push(store.get(['s', 'k']).then((found) => found?.value)))
	await Promise.all([
		log.append([about('a')]),
		log.append([about('b')], undefined, { scope: 's', ops: async () => [{ key: ['s', 'k'], value: 'b' }] }),
		log.append([about('c')]),
	])
	t.same(appends, [2, 1])
	t.same(await Promise.all(read), ['b'], 'the record is stored when the event is delivered')
})

void t.test('a failed change of records rejects its events and closes the log', async (t) => {
	const { log: stored, open } = bench()
	const log = await open()
	const ops = (): Promise<never> => Promise.reject(new Fault('not_found', 'gone'))
	await t.rejects(log.append([about('a')], undefined, { scope: 's', ops }), { code: 'not_found' })
	t.equal(log.isClosed(), true)
	t.equal((await stored.journal('r1')).last, 0)
})

void t.test('a changed record contains no secret of the run or of its provider', async (t) => {
	const { store, redactor, open } = bench()
	redactor.add({ name: 'ada', uid: 'uid' }, { id: '1', name: 'KEY', value: 'correct-horse-battery' })
	redactor.add({ provider: 'p' }, { id: '2', name: 'P', value: 'staple-of-the-provider' })
	const log = await open()
	log.involve({ provider: 'p' })
	const value = { agent: 'ada', answer: 'correct-horse-battery staple-of-the-provider' }
	await log.append([about('a')], undefined, { scope: 's', ops: async () => [{ key: ['s', 'k'], value }] })
	const kept = JSON.stringify((await store.get(['s', 'k']))?.value)
	t.match(kept, /redacted:KEY.*redacted:P/)
	t.notMatch(kept, /horse|staple/)
})

void t.test('a step without an event is rejected, because the log stores steps with events', async (t) => {
	const { open } = bench()
	const log = await open()
	await t.rejects(log.append([], { kind: 'restart' }), TypeError)
	await log.append([])
})

void t.test('a writer that takes over between steps continues with the next number', async (t) => {
	const { delivered, open } = bench()
	const first = await open()
	await first.append([about('run.started'), about('model.request'), about('model.response')])
	first.close()
	await (await open()).append([about('run.resumed')])
	t.same(sequences(delivered), [1, 2, 3, 4])
})

for (const last of ['model.request', 'model.retry', 'model.fallback', 'security.redacted']) {
	void t.test(`a writer that takes over during a model call continues above the live events (${last})`, async (t) => {
		const { bus, log, delivered } = bench()
		const first = await openRun(bus, run, true)
		await first.append([about('run.started'), about(last)])
		for (let n = 0; n < 50; n++) first.live(about('model.stream'))
		// As after a kill of the process: the next one has only the log.
		const restarted = openEventBus(log, logger)
		await (await openRun(restarted, run)).append([about('run.resumed')])
		const all = sequences(delivered)
		t.equal(all.length, 53)
		t.ok(all.every((sequence, index) => index === 0 || sequence > (all[index - 1] ?? 0)))
	})
}

void t.test('a failed append closes the writer and fails all waiting appends', async (t) => {
	const { open, log: store } = bench((append) => {
		if (append === 2) throw new Fault('storage_full', 'no room')
	})
	const log = await open()
	await log.append([about('a')])
	const failing = [log.append([about('b')])]
	await Promise.resolve()
	failing.push(log.append([about('c')]))
	const results = await Promise.allSettled(failing)
	t.match(results, [
		{ status: 'rejected', reason: { code: 'storage_full' } },
		{ status: 'rejected', reason: { code: 'storage_full' } },
	])
	t.ok(log.isClosed())
	await t.rejects(log.append([about('d')]), { code: 'stopped' })
	t.equal((await store.journal('r1')).last, 1)
})

void t.test('a writer whose run another process took over is fenced', async (t) => {
	const { bus, log: store } = bench()
	const old = await openRun(bus, run)
	await old.append([about('run.started')])
	const otherProcess = openEventBus(store, logger)
	await (await openRun(otherProcess, run)).append([about('run.resumed')])
	await t.rejects(old.append([about('model.request')]), { code: 'fenced' })
	t.ok(old.isClosed())
})

void t.test('a closed writer rejects appends and drops live events, but a write in progress settles', async (t) => {
	const gate = Promise.withResolvers<void>()
	const { delivered, open } = bench((append) => (append === 1 ? gate.promise : undefined))
	const log = await open()
	const inProgress = log.append([about('model.request')])
	log.live(about('model.stream'))
	await new Promise(setImmediate)
	log.close()
	log.live(about('model.stream'))
	await t.rejects(log.append([about('late')]), { code: 'stopped' })
	gate.resolve()
	await inProgress
	await new Promise(setImmediate)
	t.same(typesOf(delivered), ['model.request'])
})

void t.test('a writer that takes over in the same process waits for writes of the previous one', async (t) => {
	const gate = Promise.withResolvers<void>()
	const { delivered, bus } = bench((append) => (append === 1 ? gate.promise : undefined))
	const first = await openRun(bus, run)
	const inProgress = first.append([about('model.request')])
	const second = openRun(bus, run)
	const third = openRun(bus, run)
	await new Promise(setImmediate)
	t.ok(first.isClosed())
	gate.resolve()
	await inProgress
	const writer = await third
	await t.rejects((await second).append([about('never')]), { code: 'stopped' })
	await writer.append([about('run.stopped')])
	t.same(typesOf(delivered), ['model.request', 'run.stopped'])
})

void t.test('while the disk does not respond, the queue of appends has a bound', async (t) => {
	const gate = Promise.withResolvers<void>()
	const { delivered, open } = bench((append) => (append === 1 ? gate.promise : undefined))
	const log = await open()
	const first = log.append([about('first')])
	await new Promise(setImmediate)
	for (let n = 0; n < 5_000; n++) log.live(about('model.stream'))
	const appended: Promise<void>[] = []
	while (!log.isClosed()) appended.push(log.append([about('more')]))
	t.ok(appended.length < 20_000)
	await t.rejects(appended.pop() ?? Promise.resolve(), { code: 'queue_full' })
	gate.resolve()
	await Promise.all([first, ...appended])
	t.equal(delivered.filter(({ event }) => event.event_type === 'more').length, appended.length)
})

void t.test('2,000 interleaved appends and live events keep their order, without gaps in the sequence', async (t) => {
	const { delivered, open } = bench()
	const log = await open()
	for (let n = 1; n <= 2_000; n++) {
		if (n % 3 === 0) log.live(about('live', { n }))
		else if (n % 7 === 0) await log.append([about('kept', { n })])
		else log.append([about('kept', { n })]).catch(t.threw)
	}
	await log.append([about('end', { n: 2_001 })])
	t.same(
		delivered.map(({ event }) => event.payload.n),
		Array.from({ length: 2_001 }, (_, index) => index + 1),
	)
	t.same(
		sequences(delivered),
		Array.from({ length: 2_001 }, (_, index) => index + 1),
	)
})

void t.test('appendSoon writes its event together with the next append, in order', async (t) => {
	const { appends, delivered, open } = bench()
	const log = await open()
	await log.append([about('run.started')])
	log.appendSoon(about('model.request'))
	log.live(about('model.stream'))
	log.live(about('model.stream'))
	await log.append([about('model.response')])
	t.same(appends, [1, 2])
	t.same(typesOf(delivered), ['run.started', 'model.request', 'model.stream', 'model.stream', 'model.response'])
	t.same(sequences(delivered), [1, 2, 3, 4, 5])
})

void t.test('appendSoon writes its event if no append follows', async (t) => {
	const { bus, appends, open } = bench()
	const log = await open()
	const written = Promise.withResolvers<void>()
	bus.subscribe({ types: ['model.request'] }, () => written.resolve())
	log.appendSoon(about('model.request'))
	await written.promise
	t.same(appends, [1])
})

void t.test('appendSoon writes its event before a later live event, each time', async (t) => {
	const { bus, appends, delivered, open } = bench()
	const log = await open()
	const written = Promise.withResolvers<void>()
	bus.subscribe({ types: ['model.stream'] }, () => written.resolve())
	log.appendSoon(about('model.request'))
	log.live(about('model.stream'))
	t.same(delivered, [], 'the later live event waits')
	await written.promise
	t.same(appends, [1])
	t.same(typesOf(delivered), ['model.request', 'model.stream'])
	t.equal(log.journal.last, 1)
	const again = Promise.withResolvers<void>()
	bus.subscribe({ types: ['model.retry'] }, () => again.resolve())
	log.appendSoon(about('model.retry'))
	await again.promise
	t.same(appends, [1, 1])
})

void t.test('appendSoon writes its event if the log is closed or taken over', async (t) => {
	const { log: stored, appends, open } = bench()
	const first = await open()
	first.appendSoon(about('model.request'))
	const second = await open()
	t.ok(first.isClosed())
	t.equal(second.journal.lastEvent?.event_type, 'model.request')
	second.appendSoon(about('model.retry'))
	second.close()
	const third = await open()
	t.same(appends, [1, 1])
	t.equal(third.journal.lastEvent?.event_type, 'model.retry')
	t.equal((await stored.read({}, null, 10)).entries.length, 2)
})

void t.test('live events before a failed append are never delivered', async (t) => {
	const { delivered, open } = bench((append) => {
		if (append === 1) throw new Fault('storage_full', 'the disk is full')
	})
	const log = await open()
	log.appendSoon(about('model.request'))
	log.live(about('model.stream'))
	await t.rejects(log.append([about('model.response')]), { code: 'storage_full' })
	const next = await open()
	await next.append([about('a')])
	t.same(typesOf(delivered), ['a'])
})
