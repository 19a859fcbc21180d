import { endOf } from '../keys.ts'
import type { Contents, Job } from '../ports.ts'
import { readRecord } from './log-record.ts'
import { queueBacking, recoverJobs } from './queue.ts'
import { keyBatches, keysOf } from './tables.ts'
import type { Tables } from './tables.ts'
import type { Writer } from './writer.ts'

/** Records of the log that are read before yielding to other work. */
const batch = 200
/** Below and above every key. */
const all = { start: '\u0001', end: '\u{10ffff}' }

/** Everything in the data file, for a copy. */
export function contentsOf(tables: Tables, writer: Writer): Contents {
	return {
		async *scopes() {
			for (let { start } = all; ;) {
				writer.mustBeOpen()
				const [key] = keysOf(tables.records, { ...all, start }, 1)
				const scope = key?.split('\0')[0]
				if (scope === undefined) return
				yield scope
				start = endOf(scope)
			}
		},
		async *appends() {
			for await (const keys of keyBatches({ table: tables.log, writer }, all, batch)) {
				for (const key of keys) {
					const record = readRecord(tables.log, key)
					if (record) yield { run: record.run, entries: record.entries }
				}
			}
		},
		async *jobs() {
			const { load } = queueBacking(tables, writer)
			for (const { place, id } of recoverJobs(tables)) yield load(place, id) satisfies Job
		},
	}
}
