import { remaining, triesOf } from '../dispatcher.ts'
import type { Backing, Recovered, Tries } from '../dispatcher.ts'
import type { Job } from '../ports.ts'
import type { Tables } from './tables.ts'
import { keyNumber, keysOf, numberKey } from './tables.ts'
import { damaged, findRecord, sealValue, valueOf } from './record.ts'
import type { Writer } from './writer.ts'

/** Stores the jobs of the queue in LMDB. A job is durable once `add` has resolved. */
export function queueBacking({ jobs, tries }: Tables, writer: Writer): Backing {
	return {
		add(place, job) {
			const key = jobKey(place, job.id)
			const bytes = sealValue(key, 0, job.body)
			return writer.write([{ table: jobs, key, bytes }])
		},
		async mark(place, attempt, delayMs) {
			const key = numberKey(place)
			await writer.write([{ table: tries, key, bytes: sealValue(key, attempt, triesOf(attempt, delayMs)) }])
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
		const stored = found && (valueOf(tries, place, found.bytes) as Tries)
		return { place: keyNumber(place), id, ...remaining(stored) }
	})
}

function jobKey(place: number, id: string): string {
	return `${numberKey(place)}\0${id}`
}
