import type { Backing, Recovered } from '../dispatcher.ts'
import type { Job } from '../ports.ts'
import type { Tables } from './tables.ts'
import { keyNumber, keysOf, numberKey } from './tables.ts'
import { damaged, findRecord, sealValue, valueOf } from './record.ts'
import type { Writer } from './writer.ts'

/** What `tries` stores about a job that was handed out. */
interface Tries {
	attempt: number
	/** Milliseconds since 1970: the job must not be handed out before. */
	due: number
	/** The requested delay: a step of the clock must not make it longer. */
	delay: number
}

export function queueBacking({ jobs, tries }: Tables, writer: Writer): Backing {
	return {
		add(place, job) {
			const key = jobKey(place, job.id)
			const bytes = sealValue(key, 0, job.body)
			return writer.write([{ table: jobs, key, bytes }])
		},
		async mark(place, attempt, delayMs) {
			const key = numberKey(place)
			const value: Tries = { attempt, due: delayMs > 0 ? Date.now() + delayMs : 0, delay: delayMs }
			await writer.write([{ table: tries, key, bytes: sealValue(key, attempt, value) }])
		},
		async remove(place, id) {
			await writer.write([
				{ table: jobs, key: jobKey(place, id) },
				{ table: tries, key: numberKey(place) },
			])
		},
		load(place, id): Job {
			const key = jobKey(place, id)
			const found = findRecord(jobs, key)
			if (!found) throw damaged(jobs, key)
			return { id, body: valueOf(jobs, key, found.bytes) as Job['body'] }
		},
	}
}

/** Every job that was not acknowledged, oldest first. */
export function recoverJobs({ jobs, tries }: Tables): Recovered[] {
	const keys = keysOf(jobs, { start: '0', end: '~' }, Number.POSITIVE_INFINITY)
	return keys.map((key) => {
		const [place, id] = key.split('\0') as [string, string]
		const found = findRecord(tries, place)
		if (!found) return { place: keyNumber(place), id, attempt: 0, delayMs: 0 }
		const { attempt, due, delay } = valueOf(tries, place, found.bytes) as Tries
		return { place: keyNumber(place), id, attempt, delayMs: Math.min(Math.max(0, due - Date.now()), delay) }
	})
}

function jobKey(place: number, id: string): string {
	return `${numberKey(place)}\0${id}`
}
