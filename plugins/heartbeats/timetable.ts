/** Entries by due time, with one timer for all of them. */
import { Heap } from '../../core/util/heap.ts'
import { openSemaphore } from '../../core/util/semaphore.ts'
import { SerialQueues } from '../shared/serial-queues.ts'

export interface TimetableOptions<T> {
	/** Items with the same queue are executed one after another. */
	queueOf(item: T): string
	/** Executes a due item, and returns when it is due again. If it throws, it is retried a minute later. */
	due(item: T): Promise<number | undefined>
	failed(error: unknown, item: T): void
	/** Called when the clock was set back, after which computed times may be wrong. */
	clockSetBack(): void
	clock?: { now(): number; monotonic(): number }
}

interface TimetableEntry<T> {
	key: string
	at: number
	item: T
}

/** Timers last at most 24.8 days, and ignore changes of the clock and sleep of the machine. */
const MAX_TIMER_MS = 30_000
const SET_BACK_MS = 5_000
const RETRY_MS = 60_000
const CONCURRENCY = 16

const systemClock = { now: () => Date.now(), monotonic: () => performance.now() }

export function openTimetable<T>(options: TimetableOptions<T>) {
	const { clock = systemClock } = options
	const entries = new Map<string, TimetableEntry<T>>()
	const isBefore = (one: TimetableEntry<T>, other: TimetableEntry<T>): boolean => one.at < other.at
	let heap = new Heap(isBefore)
	const queues = new SerialQueues()
	const slots = openSemaphore(CONCURRENCY)
	let timer: NodeJS.Timeout | undefined
	let stopped = false
	let offset = clock.now() - clock.monotonic()

	const add = (entry: TimetableEntry<T>): void => {
		entries.set(entry.key, entry)
		heap.push(entry)
		if (heap.size <= 2 * entries.size + 64) return
		heap = new Heap(isBefore) // rebuilt without replaced entries
		for (const one of entries.values()) heap.push(one)
	}

	const execute = async (entry: TimetableEntry<T>): Promise<void> => {
		const release = await slots.acquire()
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
			release()
			plan()
		}
	}

	const check = (): void => {
		const before = offset
		offset = clock.now() - clock.monotonic()
		if (offset < before - SET_BACK_MS) options.clockSetBack()
		for (let next = heap.peek(); next && next.at <= clock.now(); next = heap.peek()) {
			heap.pop()
			if (entries.get(next.key) === next) void queues.run(options.queueOf(next.item), () => execute(next))
		}
		plan()
	}

	const plan = (): void => {
		clearTimeout(timer)
		const next = heap.peek()
		if (stopped || !next) return
		timer = setTimeout(check, Math.min(Math.max(next.at - clock.now(), 0), MAX_TIMER_MS)).unref()
	}

	return {
		/** `at` in milliseconds since 1970. Replaces an entry with the same key. */
		set(key: string, at: number, item: T): void {
			add({ key, at, item })
			plan()
		},
		delete: (key: string): void => void entries.delete(key),
		/** Deletes all entries whose item matches. */
		sweep(matches: (item: T) => boolean): void {
			for (const { key, item } of entries.values()) if (matches(item)) entries.delete(key)
		},
		async [Symbol.asyncDispose](): Promise<void> {
			stopped = true
			clearTimeout(timer)
			await queues.idle()
		},
	}
}
