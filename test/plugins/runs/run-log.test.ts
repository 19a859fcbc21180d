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
	heard: Delivery[]
	/** How many entries each append held. */
	appends: number[]
	open(): Promise<RunLog>
}

/** A bus over the in-memory log; `before` runs ahead of each append and may hold it back or refuse it. */
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
	const heard: Delivery[] = []
	bus.subscribe({}, (one) => heard.push(one))
	return { bus, log, store, redactor, heard, appends, open: () => openRun(bus, run) }
}

const typesOf = (heard: Delivery[]): string[] => heard.map(({ event }) => event.event_type)
const sequences = (heard: Delivery[]): number[] => heard.map(({ event }) => event.sequence)

void t.test('the sequence of a run begins at 1 and rises by one, live events counted', async (t) => {
	const { heard, open } = bench()
	const log = await open()
	void log.append([about('run.started'), about('model.request')])
	log.live(about('model.stream'))
	log.live(about('model.stream'))
	await log.append([about('model.response')])
	t.same(sequences(heard), [1, 2, 3, 4, 5])
	t.ok(heard.every(({ event }) => event.run_id === 'r1' && event.agent_id === 'ada'))
})

void t.test('what is appended in one turn goes as one append', async (t) => {
	const { appends, open } = bench()
	const log = await open()
	await Promise.all([log.append([about('a')]), log.append([about('b'), about('c')]), log.append([about('d')])])
	t.same(appends, [4])
})

void t.test('what is appended while an append is under way goes as one with the next', async (t) => {
	const gate = Promise.withResolvers<void>()
	const { appends, heard, open } = bench((append) => (append === 1 ? gate.promise : undefined))
	const log = await open()
	const done = [log.append([about('a')])]
	await new Promise(setImmediate)
	for (const type of ['b', 'c', 'd']) done.push(log.append([about(type)]))
	t.same(appends, [1])
	gate.resolve()
	await Promise.all(done)
	t.same(appends, [1, 3])
	t.same(typesOf(heard), ['a', 'b', 'c', 'd'])
})

void t.test(
	'a live event waits for what was appended before it, and what is appended behind it waits for it',
	async (t) => {
		const gate = Promise.withResolvers<void>()
		const { heard, open } = bench((append) => (append === 1 ? gate.promise : undefined))
		const log = await open()
		void log.append([about('model.request')])
		log.live(about('model.stream'))
		const response = log.append([about('model.response')])
		await new Promise(setImmediate)
		t.same(heard, [])
		gate.resolve()
		await response
		t.same(typesOf(heard), ['model.request', 'model.stream', 'model.response'])
	},
)

void t.test('an append settles only when its events are in the log', async (t) => {
	const { log: store, open } = bench()
	const log = await open()
	for (const type of ['a', 'b', 'c']) {
		await log.append([about(type)])
		t.equal((await store.journal('r1')).lastEvent?.event_type, type)
	}
})

void t.test('a step comes back with the journal, in order', async (t) => {
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

void t.test('the journal grows with what is appended', async (t) => {
	const { open } = bench()
	const log = await open()
	const first = log.append([about('run.started')])
	t.match(log.journal, { last: 0, lastEvent: undefined, steps: [] }, 'not before it is durable')
	await first
	await log.append([about('a'), about('run.resumed')], { kind: 'restart' })
	t.match(log.journal, { last: 3, lastEvent: { event_type: 'run.resumed' }, steps: [{ kind: 'restart' }] })
})

void t.test('a change of records goes with its events, and with what was appended before', async (t) => {
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
	t.same(await Promise.all(read), ['b'], 'whoever hears of it reads the record')
})

void t.test('a change that cannot be made refuses its events, and closes the log', async (t) => {
	const { log: stored, open } = bench()
	const log = await open()
	const ops = (): Promise<never> => Promise.reject(new Fault('not_found', 'gone'))
	await t.rejects(log.append([about('a')], undefined, { scope: 's', ops }), { code: 'not_found' })
	t.equal(log.closed, true)
	t.equal((await stored.journal('r1')).last, 0)
})

void t.test('a changed record has no secret of the run, not even the key of its provider', async (t) => {
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

void t.test('a step without an event is refused, since nothing could carry it', async (t) => {
	const { open } = bench()
	const log = await open()
	await t.rejects(log.append([], { kind: 'restart' }), TypeError)
	await log.append([])
})

void t.test('a writer that takes over between steps goes on with the next number', async (t) => {
	const { heard, open } = bench()
	const first = await open()
	await first.append([about('run.started'), about('model.request'), about('model.response')])
	first.close()
	await (await open()).append([about('run.resumed')])
	t.same(sequences(heard), [1, 2, 3, 4])
})

for (const last of ['model.request', 'model.retry', 'model.fallback', 'security.redacted']) {
	void t.test(
		`a writer that takes over in the middle of a model call stays above what was live (${last})`,
		async (t) => {
			const { bus, log, heard } = bench()
			const first = await openRun(bus, run, true)
			await first.append([about('run.started'), about(last)])
			for (let n = 0; n < 50; n++) first.live(about('model.stream'))
			// The process dies here: the next one knows the log only.
			const reborn = openEventBus(log, logger)
			await (await openRun(reborn, run)).append([about('run.resumed')])
			const all = sequences(heard)
			t.equal(all.length, 53)
			t.ok(all.every((one, index) => index === 0 || one > (all[index - 1] ?? 0)))
		},
	)
}

void t.test('a refused append closes the writer, and everything that waits fails with it', async (t) => {
	const { open, log: store } = bench((append) => {
		if (append === 2) throw new Fault('storage_full', 'no room')
	})
	const log = await open()
	await log.append([about('a')])
	const lost = [log.append([about('b')])]
	await Promise.resolve()
	lost.push(log.append([about('c')]))
	const results = await Promise.allSettled(lost)
	t.match(results, [
		{ status: 'rejected', reason: { code: 'storage_full' } },
		{ status: 'rejected', reason: { code: 'storage_full' } },
	])
	t.ok(log.closed)
	await t.rejects(log.append([about('d')]), { code: 'stopped' })
	t.equal((await store.journal('r1')).last, 1)
})

void t.test('a writer whose run was taken over elsewhere is fenced', async (t) => {
	const { bus, log: store } = bench()
	const old = await openRun(bus, run)
	await old.append([about('run.started')])
	const elsewhere = openEventBus(store, logger)
	await (await openRun(elsewhere, run)).append([about('run.resumed')])
	await t.rejects(old.append([about('model.request')]), { code: 'fenced' })
	t.ok(old.closed)
})

void t.test(
	'a closed writer refuses appends and drops live events, but what is on its way still settles',
	async (t) => {
		const gate = Promise.withResolvers<void>()
		const { heard, open } = bench((append) => (append === 1 ? gate.promise : undefined))
		const log = await open()
		const onItsWay = log.append([about('model.request')])
		log.live(about('model.stream'))
		await new Promise(setImmediate)
		log.close()
		log.live(about('model.stream'))
		await t.rejects(log.append([about('late')]), { code: 'stopped' })
		gate.resolve()
		await onItsWay
		await new Promise(setImmediate)
		t.same(typesOf(heard), ['model.request'])
	},
)

void t.test('who takes over a run in the same process waits for what the one before has on its way', async (t) => {
	const gate = Promise.withResolvers<void>()
	const { heard, bus } = bench((append) => (append === 1 ? gate.promise : undefined))
	const first = await openRun(bus, run)
	const onItsWay = first.append([about('model.request')])
	const second = openRun(bus, run)
	const third = openRun(bus, run)
	await new Promise(setImmediate)
	t.ok(first.closed)
	gate.resolve()
	await onItsWay
	const writer = await third
	await t.rejects((await second).append([about('never')]), { code: 'stopped' })
	await writer.append([about('run.stopped')])
	t.same(typesOf(heard), ['model.request', 'run.stopped'])
})

void t.test('what waits for a disk that does not answer has a bound', async (t) => {
	const gate = Promise.withResolvers<void>()
	const { heard, open } = bench((append) => (append === 1 ? gate.promise : undefined))
	const log = await open()
	const first = log.append([about('first')])
	await new Promise(setImmediate)
	for (let n = 0; n < 5_000; n++) log.live(about('model.stream'))
	const appended: Promise<void>[] = []
	while (!log.closed) appended.push(log.append([about('more')]))
	t.ok(appended.length < 20_000)
	await t.rejects(appended.pop() ?? Promise.resolve(), { code: 'queue_full' })
	gate.resolve()
	await Promise.all([first, ...appended])
	t.equal(heard.filter(({ event }) => event.event_type === 'more').length, appended.length)
})

void t.test('two thousand interleaved appends and live events keep their order and rise strictly', async (t) => {
	const { heard, open } = bench()
	const log = await open()
	for (let n = 1; n <= 2_000; n++) {
		if (n % 3 === 0) log.live(about('live', { n }))
		else if (n % 7 === 0) await log.append([about('kept', { n })])
		else log.append([about('kept', { n })]).catch(t.threw)
	}
	await log.append([about('end', { n: 2_001 })])
	t.same(
		heard.map(({ event }) => event.payload.n),
		Array.from({ length: 2_001 }, (_, index) => index + 1),
	)
	t.same(
		sequences(heard),
		Array.from({ length: 2_001 }, (_, index) => index + 1),
	)
})

void t.test('an event that is appended soon is written with what follows, in the order of all', async (t) => {
	const { appends, heard, open } = bench()
	const log = await open()
	await log.append([about('run.started')])
	log.appendSoon(about('model.request'))
	log.live(about('model.stream'))
	log.live(about('model.stream'))
	await log.append([about('model.response')])
	t.same(appends, [1, 2])
	t.same(typesOf(heard), ['run.started', 'model.request', 'model.stream', 'model.stream', 'model.response'])
	t.same(sequences(heard), [1, 2, 3, 4, 5])
})

void t.test('an event that is appended soon is written by itself where nothing follows', async (t) => {
	const { bus, appends, open } = bench()
	const log = await open()
	const written = Promise.withResolvers<void>()
	bus.subscribe({ types: ['model.request'] }, () => written.resolve())
	log.appendSoon(about('model.request'))
	await written.promise
	t.same(appends, [1])
})

void t.test('an event that is appended soon is written before a live event behind it, and for each anew', async (t) => {
	const { bus, appends, heard, open } = bench()
	const log = await open()
	const written = Promise.withResolvers<void>()
	bus.subscribe({ types: ['model.stream'] }, () => written.resolve())
	log.appendSoon(about('model.request'))
	log.live(about('model.stream'))
	t.same(heard, [], 'a live event behind it waits for it')
	await written.promise
	t.same(appends, [1])
	t.same(typesOf(heard), ['model.request', 'model.stream'])
	t.equal(log.journal.last, 1)
	const again = Promise.withResolvers<void>()
	bus.subscribe({ types: ['model.retry'] }, () => again.resolve())
	log.appendSoon(about('model.retry'))
	await again.promise
	t.same(appends, [1, 1])
})

void t.test('an event that is appended soon is written when its log is closed, or taken over', async (t) => {
	const { log: stored, appends, open } = bench()
	const first = await open()
	first.appendSoon(about('model.request'))
	const second = await open()
	t.ok(first.closed)
	t.equal(second.journal.lastEvent?.event_type, 'model.request')
	second.appendSoon(about('model.retry'))
	second.close()
	const third = await open()
	t.same(appends, [1, 1])
	t.equal(third.journal.lastEvent?.event_type, 'model.retry')
	t.equal((await stored.read({}, null, 10)).entries.length, 2)
})

void t.test(
	'live events before an append that fails are not delivered, and the next writer delivers none of them',
	async (t) => {
		const { heard, open } = bench((append) => {
			if (append === 1) throw new Fault('storage_full', 'the disk is full')
		})
		const log = await open()
		log.appendSoon(about('model.request'))
		log.live(about('model.stream'))
		await t.rejects(log.append([about('model.response')]), { code: 'storage_full' })
		const next = await open()
		await next.append([about('a')])
		t.same(typesOf(heard), ['a'])
	},
)
