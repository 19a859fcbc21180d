/** The timetable, with a clock that the test sets. */
import { mock } from 'node:test'
import t from 'tap'
import type { Test } from 'tap'
import { openTimetable } from '../../../plugins/heartbeats/timetable.ts'
import type { TimetableOptions } from '../../../plugins/heartbeats/timetable.ts'

const DAY_MS = 86_400_000

interface Fake {
	timetable: ReturnType<typeof openTimetable<string>>
	/** Advances both clocks, and executes what is due. */
	pass(ms: number): Promise<void>
	/** Moves the wall clock only. */
	shift(ms: number): void
	done: string[]
	now(): number
}

function open(
	t: Test,
	due: (item: string, fake: Fake) => number | undefined,
	options: Partial<TimetableOptions<string>> = {},
): Fake {
	mock.timers.enable({ apis: ['setTimeout'] })
	t.teardown(() => mock.timers.reset())
	let wall = 1_000_000
	let monotonic = 0
	const done: string[] = []
	const fake: Fake = {
		done,
		now: () => wall,
		async pass(ms) {
			for (let left = ms; left > 0; left -= 1_000) {
				const step = Math.min(left, 1_000)
				wall += step
				monotonic += step
				mock.timers.tick(step)
				await settle()
			}
		},
		shift: (ms) => void (wall += ms),
		timetable: openTimetable<string>({
			queueOf: (item) => item,
			due: async (item) => {
				done.push(item)
				return due(item, fake)
			},
			failed: () => {},
			clockSetBack: () => {},
			clock: { now: () => wall, monotonic: () => monotonic },
			...options,
		}),
	}
	return fake
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

void t.test('due items are handled in order, once, and again if they return a time', async (t) => {
	const fake = open(t, (item, { now }) => (item === 'often' ? now() + 10_000 : undefined))
	fake.timetable.set('late', fake.now() + 25_500, 'late')
	fake.timetable.set('often', fake.now() + 5_000, 'often')
	fake.timetable.set('gone', fake.now() + 7_000, 'gone')
	fake.timetable.set('moved', fake.now() + 2_000, 'moved')
	fake.timetable.set('moved', fake.now() + 60_000, 'moved')
	fake.timetable.delete('gone')
	await fake.pass(4_000)
	t.strictSame(fake.done, [])
	await fake.pass(26_000)
	t.strictSame(fake.done, ['often', 'often', 'often', 'late'])
	await fake.pass(31_000)
	t.equal(fake.done.filter((item) => item === 'moved').length, 1)
	t.equal(fake.done.filter((item) => item === 'late').length, 1)
	await fake.timetable[Symbol.asyncDispose]()
})

void t.test('an item may be due later than the longest timer', async (t) => {
	const fake = open(t, () => undefined)
	fake.timetable.set('far', fake.now() + 40 * DAY_MS, 'far')
	await fake.pass(120_000)
	t.strictSame(fake.done, [])
	fake.shift(40 * DAY_MS - 125_000) // as after a sleep, during which no timer runs
	await fake.pass(4_000)
	t.strictSame(fake.done, [])
	await fake.pass(30_000)
	t.strictSame(fake.done, ['far'])
	await fake.timetable[Symbol.asyncDispose]()
})

void t.test('a clock that was set back is reported', async (t) => {
	let reports = 0
	const fake = open(t, () => undefined, { clockSetBack: () => void reports++ })
	fake.timetable.set('x', fake.now() + DAY_MS, 'x')
	await fake.pass(60_000)
	t.equal(reports, 0)
	fake.shift(-3_600_000)
	await fake.pass(31_000)
	t.equal(reports, 1)
	await fake.timetable[Symbol.asyncDispose]()
})

void t.test('a failed item is retried, and does not block others', async (t) => {
	let failures = 0
	const fake = open(
		t,
		(item) => {
			if (item === 'bad' && failures < 2) throw new Error('the disk is full')
			return undefined
		},
		{ failed: () => void failures++ },
	)
	for (const item of ['bad', 'good', 'fine']) fake.timetable.set(item, fake.now() + 1_000, item)
	await fake.pass(2_000)
	t.strictSame(fake.done.toSorted(), ['bad', 'fine', 'good'])
	await fake.pass(180_000)
	t.equal(fake.done.filter((item) => item === 'bad').length, 3)
	await fake.timetable[Symbol.asyncDispose]()
})

void t.test('items of a queue are handled one by one, at most sixteen in all, and a stop waits for them', async (t) => {
	const gates: (() => void)[] = []
	let active = 0
	let most = 0
	const busy = new Set<string>()
	const fake = open(t, () => undefined, {
		queueOf: (item) => item.slice(0, 2),
		due: async (item) => {
			const queue = item.slice(0, 2)
			t.notOk(busy.has(queue), 'no other item of the queue is active')
			busy.add(queue)
			most = Math.max(most, ++active)
			await new Promise<void>((resolve) => gates.push(resolve))
			active--
			busy.delete(queue)
			return undefined
		},
	})
	for (let queue = 10; queue < 40; queue++)
		for (const n of [1, 2]) fake.timetable.set(`${queue}-${n}`, fake.now() + 1_000, `${queue}-${n}`)
	await fake.pass(1_000)
	t.equal(active, 16)
	gates.splice(0, 8).forEach((open) => open())
	await settle()
	t.equal(active, 16)
	let stopped = false
	const stop = Promise.resolve(fake.timetable[Symbol.asyncDispose]()).then(() => (stopped = true))
	await settle()
	t.notOk(stopped)
	const begun = gates.length
	while (!stopped) {
		gates.splice(0).forEach((open) => open())
		await settle()
	}
	await stop
	t.equal(begun, 16)
	t.equal(most, 16)
	t.equal(active, 0)
})
