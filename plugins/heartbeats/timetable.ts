/** What is due when, with one timer for all of it. */
import { Heap } from '../../core/store/heap.ts'

export interface Timetable<T> extends AsyncDisposable {
	/** `at` in milliseconds since 1970. What is there under that key goes. */
	set(key: string, at: number, item: T): void
	delete(key: string): void
	/** Deletes all for which this is true. */
	sweep(which: (item: T) => boolean): void
}

export interface TimetableOptions<T> {
	/** Items of one lane are done one after another. */
	laneOf(item: T): string
	/** Does what is due, and answers when that is due again. After a throw it is tried again a minute later. */
	due(item: T): Promise<number | undefined>
	failed(error: unknown, item: T): void
	/** The clock was set back: times computed from it may be wrong. */
	setBack(): void
	clock?: { now(): number; monotonic(): number }
}

interface Entry<T> {
	key: string
	at: number
	item: T
}

/** A timer counts at most 24.8 days, and does not notice that the clock was set or that the machine slept. */
const LONGEST_SLEEP_MS = 30_000
const SET_BACK_MS = 5_000
const RETRY_MS = 60_000
const SIDE_BY_SIDE = 16

const systemClock = { now: () => Date.now(), monotonic: () => performance.now() }

export function openTimetable<T>(options: TimetableOptions<T>): Timetable<T> {
	const { clock = systemClock } = options
	const entries = new Map<string, Entry<T>>()
	let heap = new Heap<Entry<T>>(({ at }) => at)
	const lanes = new Map<string, Promise<void>>()
	const waiting: (() => void)[] = []
	let active = 0
	let timer: NodeJS.Timeout | undefined
	let stopped = false
	let offset = clock.now() - clock.monotonic()

	const add = (entry: Entry<T>): void => {
		entries.set(entry.key, entry)
		heap.push(entry)
		if (heap.size <= 2 * entries.size + 64) return
		heap = new Heap(({ at }) => at) // without those that were replaced
		for (const one of entries.values()) heap.push(one)
	}

	const work = async (entry: Entry<T>): Promise<void> => {
		while (active >= SIDE_BY_SIDE) await new Promise<void>((resolve) => waiting.push(resolve))
		active++
		try {
			if (stopped || entries.get(entry.key) !== entry) return
			let again: number | undefined
			try {
				again = await options.due(entry.item)
			} catch (error) {
				options.failed(error, entry.item)
				again = clock.now() + RETRY_MS
			}
			if (entries.get(entry.key) !== entry) return // replaced or deleted meanwhile
			if (again === undefined) entries.delete(entry.key)
			else add({ ...entry, at: again })
		} finally {
			active--
			waiting.shift()?.()
			plan()
		}
	}

	const begin = (entry: Entry<T>): void => {
		const lane = options.laneOf(entry.item)
		const done = (lanes.get(lane) ?? Promise.resolve())
			.then(() => work(entry))
			.finally(() => {
				if (lanes.get(lane) === done) lanes.delete(lane)
			})
		lanes.set(lane, done)
	}

	const look = (): void => {
		const before = offset
		offset = clock.now() - clock.monotonic()
		if (offset < before - SET_BACK_MS) options.setBack()
		for (let next = heap.peek(); next && next.at <= clock.now(); next = heap.peek()) {
			heap.pop()
			if (entries.get(next.key) === next) begin(next)
		}
		plan()
	}

	const plan = (): void => {
		clearTimeout(timer)
		const next = heap.peek()
		if (stopped || !next) return
		timer = setTimeout(look, Math.min(Math.max(next.at - clock.now(), 0), LONGEST_SLEEP_MS)).unref()
	}

	return {
		set(key, at, item) {
			add({ key, at, item })
			plan()
		},
		delete: (key) => void entries.delete(key),
		sweep(which) {
			for (const { key, item } of entries.values()) if (which(item)) entries.delete(key)
		},
		async [Symbol.asyncDispose]() {
			stopped = true
			clearTimeout(timer)
			await Promise.all(lanes.values())
		},
	}
}
