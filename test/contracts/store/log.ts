import type { Test } from 'tap'
import type { Cursor, Engine, EventEnvelope, EventLog, LogEntry, LogFilter } from '../../../core/store/ports.ts'
import type { Open, StoreSuiteOptions } from '../store.ts'
import { newId, timeOfId } from '../../../core/util/ids.ts'
import { rejects } from './records.ts'

export function logSuite(t: Test, open: Open, { reopen }: StoreSuiteOptions): void {
	const test = (name: string, body: (t: Test, log: EventLog, engine: Engine) => Promise<void>): void => {
		void t.test(name, async (t) => {
			await using engine = await open()
			await body(t, engine.log, engine)
		})
	}

	test('begins empty', async (t, log) => {
		t.strictSame(await log.read({}, null, 10), { entries: [], next: null })
		t.strictSame(await log.read({}, null, 10, true), { entries: [], next: null })
		t.strictSame(await log.read({}, log.head(), 10), { entries: [], next: null })
		t.strictSame(await log.journal('r'), { last: 0, lastEvent: undefined, steps: [] })
	})

	test('reads back what was appended, without the steps', async (t, log) => {
		const entries = [entry('r', 1, { payload: { text: 'ü\ud83d', n: null } }), entry('r', 5, { agent_id: null })]
		const cursors = await log.append('r', 0, [{ ...(entries[0] as LogEntry), step: { kind: 'model' } }, entries[1]!])
		t.equal(cursors.length, 2)
		t.strictSame(await log.read({}, null, 10), {
			entries: entries.map(({ event }, i) => ({ cursor: cursors[i], event })),
			next: null,
		})
		t.equal(log.head(), cursors[1])
	})

	test('finds an event by its id, and nothing else', async (t, log) => {
		const made = Array.from({ length: 300 }, (_, n) => {
			const event_id = newId()
			const timestamp = new Date(timeOfId(event_id) ?? 0).toISOString()
			return entry(`run ${n % 7}`, n + 1, { event_id, timestamp })
		})
		// Some are appended after others that were created later.
		const order = made.map((one, n) => (n % 10 === 0 ? made[n + 9] : n % 10 === 9 ? made[n - 9] : one)) as LogEntry[]
		const lasts = new Map<string, number>()
		const cursors = new Map<string, Cursor>()
		for (const [n, { event }] of order.entries()) {
			const sequence = n + 1
			const [cursor] = await log.append(event.run_id, lasts.get(event.run_id ?? '') ?? 0, [
				{ event: { ...event, sequence } },
			])
			lasts.set(event.run_id ?? '', sequence)
			cursors.set(event.event_id, cursor ?? '')
		}
		for (const [event_id, cursor] of cursors) t.equal(await log.find(event_id), cursor)
		for (const unknown of [newId(), '018f0000-0000-7000-8000-000000000000', 'x', '', '1'])
			t.equal(await log.find(unknown), null, unknown)
	})

	test('finds an event that was written while the clock was wrong', async (t, log) => {
		const begin = Date.now()
		const day = 86_400_000
		const append = async (shown: number, ofId = shown): Promise<[string, Cursor | undefined]> => {
			const event_id = idAt(ofId)
			const timestamp = new Date(shown).toISOString()
			const [cursor] = await log.append(null, 0, [entry(null, 0, { event_id, timestamp })])
			return [event_id, cursor]
		}
		const appended: [string, Cursor | undefined][] = []
		for (let n = 0; n < 20; n++) appended.push(await append(begin + n))
		for (let n = 0; n < 20; n++) appended.push(await append(begin + day + n))
		// The clock is set back: ids of this process continue after the last one, those of the next process do not.
		for (let n = 0; n < 20; n++) appended.push(await append(begin + 1_000 + n, begin + day + 20 + n))
		for (let n = 0; n < 20; n++) appended.push(await append(begin + 2_000 + n))
		for (let n = 0; n < 20; n++) appended.push(await append(begin - day + n))
		for (const [n, [event_id, cursor]] of appended.entries()) t.equal(await log.find(event_id), cursor, `event ${n}`)
		t.equal(await log.find(idAt(begin + day + 5)), null)
	})

	test('allows a run only one writer', async (t, log) => {
		await log.append('r', 0, [entry('r', 1), entry('r', 2)])
		await rejects(t, log.append('r', 0, [entry('r', 3)]), 'fenced')
		await rejects(t, log.append('r', 1, [entry('r', 3)]), 'fenced')
		await rejects(t, log.append('r', 9, [entry('r', 10)]), 'fenced')
		await rejects(t, log.append('never seen', 1, [entry('never seen', 2)]), 'fenced')
		await log.append('r', 2, [entry('r', 7)])
		await log.append('other', 0, [entry('other', 1)])
		t.equal((await log.journal('r')).last, 7)
	})

	test('lets one of several writers of a run win', async (t, log) => {
		const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => log.append('r', 0, [entry('r', 1)])))
		t.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
		t.strictSame(await sequences(log, { run_id: 'r' }), [1])
	})

	test('refuses entries that do not belong there', async (t, log) => {
		await rejects(t, log.append('r', 0, [entry('other', 1)]), 'invalid_request')
		await rejects(t, log.append('r', 0, [entry('r', 0)]), 'invalid_request')
		await rejects(t, log.append('r', 0, [entry('r', 2), entry('r', 2)]), 'invalid_request')
		await rejects(t, log.append('r', 0, [entry('r', 1.5)]), 'invalid_request')
		await rejects(t, log.append('r', 0, [entry('r', 1, { timestamp: 'yesterday' })]), 'invalid_request')
		await rejects(t, log.append('r\0', 0, [entry('r\0', 1)]), 'invalid_request')
		const large = { payload: { text: 'x'.repeat(8 * 1024 * 1024) } }
		await rejects(t, log.append('r', 0, [entry('r', 1, large)]), 'payload_too_large')
		t.strictSame(await log.append('r', 0, []), [])
		t.equal((await log.read({}, null, 10)).entries.length, 0)
	})

	test('accepts events of the gateway without a fence', async (t, log) => {
		await Promise.all([log.append(null, 0, [entry(null, 0)]), log.append(null, 0, [entry(null, 0), entry(null, 0)])])
		t.strictSame(await sequences(log, {}), [0, 0, 0])
	})

	test('settles appends and notifies subscribers in the order of the cursors', async (t, log) => {
		const received: [Cursor, EventEnvelope][] = []
		const settled: Cursor[] = []
		log.subscribe(() => {
			throw new Error('a subscriber that throws affects no others')
		})
		const stop = log.subscribe((cursor, event) => {
			t.equal(log.head() >= cursor || log.head().length > cursor.length, true)
			received.push([cursor, event])
		})
		await Promise.all(
			Array.from({ length: 40 }, async (_, i) => {
				const run = `r${i}`
				settled.push(...(await log.append(run, 0, [entry(run, 1), entry(run, 2)])))
				settled.push(...(await log.append(run, 2, [entry(run, 3)])))
			}),
		)
		stop()
		await log.append('late', 0, [entry('late', 1)])
		const { entries } = await log.read({}, null, 200)
		t.strictSame(
			received,
			entries.slice(0, 120).map(({ cursor, event }) => [cursor, event]),
		)
		t.strictSame(
			settled,
			received.map(([cursor]) => cursor),
		)
		t.equal(entries.length, 121)
	})

	test('reads in pages, in both directions, from any cursor', async (t, log) => {
		const cursors: Cursor[] = []
		for (let i = 0; i < 30; i++) {
			const run = `r${i % 3}`
			const last = Math.floor(i / 3) * 3
			cursors.push(
				...(await log.append(
					run,
					last,
					[1, 2, 3].map((n) => entry(run, last + n)),
				)),
			)
		}
		for (const limit of [1, 2, 7, 90, 200]) {
			t.strictSame(await cursorsOf(log, {}, limit), cursors, `forwards by ${limit}`)
			t.strictSame(await cursorsOf(log, {}, limit, true), cursors.toReversed(), `backwards by ${limit}`)
			const ofRun = cursors.filter((_, i) => Math.floor(i / 3) % 3 === 1)
			t.strictSame(await cursorsOf(log, { run_id: 'r1' }, limit), ofRun, `a run by ${limit}`)
			t.strictSame(await cursorsOf(log, { run_id: 'r1' }, limit, true), ofRun.toReversed())
		}
		for (const i of [0, 1, 2, 44, 88, 89]) {
			const after = (await log.read({}, cursors[i] as Cursor, 200)).entries.map(({ cursor }) => cursor)
			t.strictSame(after, cursors.slice(i + 1))
			const before = (await log.read({}, cursors[i] as Cursor, 200, true)).entries.map(({ cursor }) => cursor)
			t.strictSame(before, cursors.slice(0, i).toReversed())
		}
	})

	test('filters by agent, run, type and time', async (t, log) => {
		const at = (second: number): string => `2026-01-01T00:00:0${second}.000Z`
		const make = (run: string | null, sequence: number, agent_id: string | null, event_type: string): LogEntry =>
			entry(run, sequence, { agent_id, event_type, timestamp: at(sequence), event_id: `${run}-${sequence}` })
		await log.append('a1', 0, [make('a1', 1, 'a', 'run.started'), make('a1', 2, 'a', 'message.user')])
		await log.append('b1', 0, [make('b1', 1, 'b', 'run.started'), make('b1', 3, 'b', 'message.assistant')])
		await log.append(null, 0, [make(null, 0, null, 'gateway.started'), make(null, 0, 'a', 'agent.updated')])
		await log.append('a1', 2, [make('a1', 4, 'a', 'run.completed')])
		await log.append('ab', 0, [make('ab', 5, 'ab', 'messages')])

		const cases: [LogFilter, string[]][] = [
			[{}, ['a1-1', 'a1-2', 'b1-1', 'b1-3', 'null-0', 'null-0', 'a1-4', 'ab-5']],
			[{ agent_id: 'a' }, ['a1-1', 'a1-2', 'null-0', 'a1-4']],
			[{ agent_id: 'b' }, ['b1-1', 'b1-3']],
			[{ agent_id: 'nobody' }, []],
			[{ run_id: 'a1' }, ['a1-1', 'a1-2', 'a1-4']],
			[{ run_id: 'a' }, []],
			[{ run_id: 'a1', agent_id: 'b' }, []],
			[{ types: ['run.started'] }, ['a1-1', 'b1-1']],
			[{ types: ['message.*'] }, ['a1-2', 'b1-3']],
			[{ types: ['message.*', 'run.completed'] }, ['a1-2', 'b1-3', 'a1-4']],
			[{ types: ['run'] }, []],
			[{ types: [] }, []],
			[{ agent_id: 'a', types: ['run.*'] }, ['a1-1', 'a1-4']],
			[{ since: at(2) }, ['a1-2', 'b1-3', 'a1-4', 'ab-5']],
			[{ until: at(2) }, ['a1-1', 'b1-1', 'null-0', 'null-0']],
			[{ since: at(2), until: at(4) }, ['a1-2', 'b1-3']],
			[{ since: '2026-01-01T01:00:04+01:00' }, ['a1-4', 'ab-5']],
		]
		for (const [filter, expected] of cases) {
			const ids = (events: EventEnvelope[]): string[] => events.map(({ event_id }) => event_id)
			const name = JSON.stringify(filter)
			t.strictSame(ids(await all(log, filter, 2)), expected, name)
			t.strictSame(ids(await all(log, filter, 2, true)), expected.toReversed(), `${name} backwards`)
		}
		await rejects(t, log.read({ since: 'soon' }, null, 1), 'invalid_request')
	})

	test('finds a rare event among many', async (t, log) => {
		await log.append('r', 0, [entry('r', 1, { event_type: 'rare' })])
		for (let i = 0; i < 1200; i += 100)
			await Promise.all(Array.from({ length: 100 }, () => log.append(null, 0, [entry(null, 0)])))
		t.equal((await all(log, { types: ['rare'] }, 10)).length, 1)
		t.equal((await all(log, { types: ['rare'] }, 10, true)).length, 1)
	})

	test('refuses a cursor that it never returned', async (t, log) => {
		await log.append('r', 0, [entry('r', 1)])
		for (const cursor of ['', 'x', '-1', '1.5', '01', ' 1', '9007199254740993', '1000000', '1e3']) {
			await rejects(t, log.read({}, cursor, 1), 'invalid_request')
			await rejects(t, log.read({}, cursor, 1, true), 'invalid_request')
		}
		await rejects(t, log.read({}, null, 0), 'invalid_request')
	})

	test('returns the journal of a run: its end and its steps', async (t, log) => {
		let last = 0
		for (let i = 1; i <= 300; i++) {
			const step = i % 2 ? { step: { i } } : {}
			await Promise.all([
				log.append('r', last, [{ ...entry('r', last + 1), ...step }, entry('r', last + 2)]),
				log.append(null, 0, [entry(null, 0)]),
			])
			last += 2
		}
		const journal = await log.journal('r')
		t.equal(journal.last, 600)
		t.equal(journal.lastEvent?.sequence, 600)
		t.strictSame(
			journal.steps,
			Array.from({ length: 150 }, (_, i) => ({ i: 2 * i + 1 })),
		)
	})

	test('prunes old records, but not kept ones, and never the newest', async (t, log) => {
		const old = { timestamp: '2020-01-01T00:00:00.000Z' }
		const cursors: Cursor[] = []
		for (const run of ['keep', 'drop', 'mixed'])
			cursors.push(...(await log.append(run, 0, [entry(run, 1, old), entry(run, 2, old)])))
		await log.append(null, 0, [entry(null, 0, old)])
		await log.append('mixed', 2, [{ ...entry('mixed', 3), step: 'kept' }])
		await log.append('last', 0, [entry('last', 1, old)])
		const asked = new Set<string>()
		const gone = await log.prune('2021-01-01T00:00:00.000Z', async (run) => {
			asked.add(run)
			return run === 'keep'
		})
		t.equal(gone, 5)
		t.strictSame([...asked].toSorted(), ['drop', 'keep', 'mixed'])
		const left = (await all(log, {}, 3)).map(({ run_id, sequence }) => `${run_id}-${sequence}`)
		t.strictSame(left, ['keep-1', 'keep-2', 'mixed-3', 'last-1'])
		t.strictSame(await sequences(log, { run_id: 'drop' }), [])
		t.equal((await all(log, { agent_id: 'agent' }, 10)).length, 4)
		t.strictSame(await log.journal('mixed'), {
			last: 3,
			lastEvent: (await all(log, { run_id: 'mixed' }, 1))[0],
			steps: ['kept'],
		})
		t.equal(
			(await log.read({}, cursors[3] as Cursor, 10)).entries.length,
			2,
			'a pruned cursor is still a valid position',
		)
		await log.append('drop', 0, [entry('drop', 1)])
		await rejects(
			t,
			log.prune('long ago', async () => false),
			'invalid_request',
		)
	})

	test('prunes many records at once', async (t, log) => {
		const old = { timestamp: '2020-01-01T00:00:00.000Z' }
		for (let i = 0; i < 10; i++)
			await Promise.all(
				Array.from({ length: 100 }, (_, j) => log.append(`r${i}-${j}`, 0, [entry(`r${i}-${j}`, 1, old)])),
			)
		t.equal(await log.prune('2021-01-01T00:00:00.000Z', async () => false), 999)
		t.equal((await all(log, {}, 10)).length, 1)
	})

	test('keeps a run readable although its clock went backwards', async (t, log) => {
		await log.append('r', 0, [{ ...entry('r', 1), step: 1 }])
		await log.append('r', 1, [{ ...entry('r', 2, { timestamp: '2020-01-01T00:00:00.000Z' }), step: 2 }])
		await log.append('r', 2, [{ ...entry('r', 3), step: 3 }])
		t.equal(await log.prune('2021-01-01T00:00:00.000Z', async () => false), 0)
		t.strictSame((await log.journal('r')).steps, [1, 2, 3])
	})

	if (reopen) {
		void t.test('continues at its position after it was reopened', async (t) => {
			let engine = await open()
			const cursors: Cursor[] = []
			for (let round = 0; round < 3; round++) {
				const last = round * 2
				const entries = [entry('r', last + 1), { ...entry('r', last + 2), step: round }]
				cursors.push(...(await engine.log.append('r', last, entries)))
				engine = await reopen(engine)
				t.equal(engine.log.head(), cursors.at(-1))
				await rejects(t, engine.log.append('r', last, entries), 'fenced')
			}
			t.equal(new Set(cursors).size, 6)
			t.strictSame(await cursorsOf(engine.log, {}, 10), cursors)
			t.strictSame((await engine.log.journal('r')).steps, [0, 1, 2])
			await engine.log.prune('9999-01-01T00:00:00.000Z', async () => false)
			engine = await reopen(engine)
			t.equal(engine.log.head(), cursors.at(-1))
			await engine[Symbol.asyncDispose]()
		})
	}
	t.end()
}

export function entry(run: string | null, sequence: number, fields: Partial<EventEnvelope> = {}): LogEntry {
	const event: EventEnvelope = {
		event_id: `${run}-${sequence}`,
		timestamp: '2026-01-01T00:00:00.000Z',
		agent_id: 'agent',
		run_id: run,
		sequence,
		event_type: 'test.event',
		payload: { sequence },
	}
	return { event: { ...event, ...fields } }
}

let made = 0
/** A UUIDv7 of this time. */
function idAt(ms: number): string {
	const time = ms.toString(16).padStart(12, '0')
	return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${(++made).toString(16).padStart(12, '0')}`
}

async function pages(log: EventLog, filter: LogFilter, limit: number, reverse = false) {
	const found: { cursor: Cursor; event: EventEnvelope }[] = []
	let after: Cursor | null = null
	do {
		const { entries, next } = await log.read(filter, after, limit, reverse)
		if (entries.length > limit) throw new Error('a page has more than was asked for')
		found.push(...entries)
		after = next
	} while (after !== null)
	return found
}

async function all(log: EventLog, filter: LogFilter, limit: number, reverse = false): Promise<EventEnvelope[]> {
	return (await pages(log, filter, limit, reverse)).map(({ event }) => event)
}

async function cursorsOf(log: EventLog, filter: LogFilter, limit: number, reverse = false): Promise<Cursor[]> {
	return (await pages(log, filter, limit, reverse)).map(({ cursor }) => cursor)
}

async function sequences(log: EventLog, filter: LogFilter): Promise<number[]> {
	return (await all(log, filter, 100)).map(({ sequence }) => sequence)
}
