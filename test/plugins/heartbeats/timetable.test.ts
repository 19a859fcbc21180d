/** One timer for everything that is due, with a clock that the test sets. */
import { mock } from 'node:test'
import t from 'tap'
import type { Test } from 'tap'
import { openTimetable } from '../../../plugins/heartbeats/timetable.ts'
import type { TimetableOptions } from '../../../plugins/heartbeats/timetable.ts'

const DAY_MS = 86_400_000

interface Fake {
	timetable: ReturnType<typeof openTimetable<string>>
	/** Lets time pass, and what is due happen. */
	pass(ms: number): Promise<void>
	/** Sets the wall clock only. */
	set(ms: number): void
	done: string[]
	now(): number
}

function open(
	t: Test,
	due: (item: string, fake: Fake) => number | undefined,
	more: Partial<TimetableOptions<string>> = {},
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
		set: (ms) => void (wall += ms),
		timetable: openTimetable<string>({
			queueOf: (item) => item,
			due: async (item) => {
				done.push(item)
				return due(item, fake)
			},
			failed: () => {},
			clockSetBack: () => {},
			clock: { now: () => wall, monotonic: () => monotonic },
			...more,
		}),
	}
	return fake
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

void t.test('what is due is done in order, once, and again when it says so', async (t) => {
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

void t.test('far away is further than a timer can count', async (t) => {
	const fake = open(t, () => undefined)
	fake.timetable.set('far', fake.now() + 40 * DAY_MS, 'far')
	await fake.pass(120_000)
	t.strictSame(fake.done, [])
	fake.set(40 * DAY_MS - 125_000) // as after a sleep: no timer has counted that
	await fake.pass(4_000)
	t.strictSame(fake.done, [])
	await fake.pass(30_000)
	t.strictSame(fake.done, ['far'])
	await fake.timetable[Symbol.asyncDispose]()
})

void t.test('a clock that is set back is noticed', async (t) => {
	let noticed = 0
	const fake = open(t, () => undefined, { clockSetBack: () => void noticed++ })
	fake.timetable.set('x', fake.now() + DAY_MS, 'x')
	await fake.pass(60_000)
	t.equal(noticed, 0)
	fake.set(-3_600_000)
	await fake.pass(31_000)
	t.equal(noticed, 1)
	await fake.timetable[Symbol.asyncDispose]()
})

void t.test('what fails is tried again, and does not keep others from being done', async (t) => {
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

void t.test('one lane goes one after another, all together at most sixteen, and a stop waits for them', async (t) => {
	const gates: (() => void)[] = []
	let active = 0
	let most = 0
	const lanes = new Map<string, number>()
	const fake = open(t, () => undefined, {
		queueOf: (item) => item.slice(0, 2),
		due: async (item) => {
			const lane = item.slice(0, 2)
			t.notOk(lanes.get(lane), 'alone in its lane')
			lanes.set(lane, 1)
			most = Math.max(most, ++active)
			await new Promise<void>((resolve) => gates.push(resolve))
			active--
			lanes.delete(lane)
			return undefined
		},
	})
	for (let lane = 10; lane < 40; lane++)
		for (const n of [1, 2]) fake.timetable.set(`${lane}-${n}`, fake.now() + 1_000, `${lane}-${n}`)
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
