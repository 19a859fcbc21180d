/** Stores the queue's records. The queue itself is in memory (core/store/dispatcher.ts), since one gateway assigns all jobs. */
import { Fault } from '../../../core/errors.ts'
import { encodeValue } from '../../../core/store/codec.ts'
import { remaining, triesOf } from '../../../core/store/dispatcher.ts'
import type { Backing, Recovered, Tries } from '../../../core/store/dispatcher.ts'
import type { Job, Key, Store } from '../../../core/store/ports.ts'

const DIGITS = 11

/**
 * Reads every job that was not acknowledged. `after` is called with each write of a job or of its attempts: writes of the job's
 * holder must never be stored before these.
 */
export async function openStoredQueue(store: Store, after: (work: Promise<unknown>) => void) {
	/** Kept in memory, since the cluster cannot be read synchronously. */
	const jobs = new Map<number, Job>()
	const ordered = <T>(work: Promise<T>): Promise<T> => {
		after(work)
		return work
	}
	const recovered: Recovered[] = []
	const tries = new Map<string, Tries>()
	for await (const { key, value } of store.list<Tries>(['tries'])) tries.set(key[1] as string, value)
	for await (const { key, value } of store.list<Job['body']>(['jobs'])) {
		const [, place, id] = key as [string, string, string]
		const number = Number.parseInt(place, 36)
		jobs.set(number, { id, body: value })
		recovered.push({ place: number, id, ...remaining(tries.get(place)) })
	}
	const backing: Backing = {
		add(place, job) {
			encodeValue(job.body, 0) // refuses at once what cannot be stored
			const written = ordered(store.put(jobKey(place, job.id), job.body))
			jobs.set(place, structuredClone(job))
			written.catch(() => jobs.delete(place))
			return written.then(() => {})
		},
		async mark(place, attempt, delayMs) {
			await ordered(store.put(triesKey(place), triesOf(attempt, delayMs)))
		},
		async remove(place, id) {
			jobs.delete(place)
			await Promise.all([store.delete(jobKey(place, id)), store.delete(triesKey(place))])
		},
		load(place, id) {
			const job = jobs.get(place)
			if (!job) throw new Fault('store_damaged', `the job ${id} no longer exists`)
			return structuredClone(job)
		},
	}
	return {
		recovered,
		/** Jobs that are not acknowledged, the oldest first. */
		jobs: () => [...jobs.keys()].toSorted((a, b) => a - b).map((place) => jobs.get(place) as Job),
		backing,
	}
}

function jobKey(place: number, id: string): Key {
	return ['jobs', numberKey(place), id]
}

function triesKey(place: number): Key {
	return ['tries', numberKey(place)]
}

function numberKey(value: number): string {
	return value.toString(36).padStart(DIGITS, '0')
}
