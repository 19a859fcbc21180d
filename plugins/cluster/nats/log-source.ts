/** The records of the log in order, whether they are in memory or in the cluster. */
import type { Client } from './client.ts'
import { recordOf } from './log-record.ts'
import type { LogRecord } from './log-record.ts'
import type { Recent, RecentRecord } from './recent.ts'
import { token } from './streams.ts'
import type { Names } from './streams.ts'

export interface LogSource {
	/** Records from the position `seq` on; with a run its own. */
	forwards(seq: number, run?: string): AsyncGenerator<LogRecord>
	/** Records at `seq` and before it, the newest first. */
	backwards(seq: number, run?: string): AsyncGenerator<LogRecord>
}

const BATCH = 256
/** A window in which fewer records than this are found is followed by a larger one. */
const FEW = 64

export function openLogSource(client: Client, names: Names, recent: Recent, first: () => number): LogSource {
	/** Runs have their own subject; the events of the gateway itself have several. */
	const stored = async (seq: number, run?: string): Promise<LogRecord[]> => {
		const subject = run === undefined ? `${names.prefix}.ev.>` : runSubject(names, run)
		const messages = await client.direct(names.events, { seq, batch: BATCH, next_by_subj: subject })
		return messages.filter(({ data }) => data.length > 0).map(recordOf)
	}
	const held = (run?: string): readonly RecentRecord[] =>
		run === undefined ? recent.records() : recent.records().filter((record) => record.run === run)

	return {
		async *forwards(seq, run) {
			let next = Math.max(1, seq)
			for (let start = recent.from(); next < start; start = recent.from()) {
				const records = (await stored(next, run)).filter((record) => record.seq < start)
				yield* records
				next = records.length === 0 ? start : (records.at(-1) as LogRecord).seq + 1
			}
			// What is added meanwhile is newer than what the reader asked for.
			for (const record of held(run)) if (record.seq >= next) yield recordOf(record)
		},
		async *backwards(seq, run) {
			const start = recent.from()
			for (const record of held(run).toReversed()) if (record.seq <= seq && record.seq >= start) yield recordOf(record)
			let end = Math.min(seq + 1, start)
			for (let size = BATCH; end > first();) {
				const from = Math.max(1, end - size)
				const window = await windowOf((at) => stored(at, run), from, end)
				yield* window.toReversed()
				end = from
				if (window.length < FEW) size *= 4
			}
		},
	}
}

export function runSubject({ prefix }: Names, run: string): string {
	return `${prefix}.ev.0.${token(run)}`
}

async function windowOf(
	stored: (seq: number) => Promise<LogRecord[]>,
	from: number,
	end: number,
): Promise<LogRecord[]> {
	const found: LogRecord[] = []
	for (let next = from; next < end;) {
		const records = await stored(next)
		if (records.length === 0) break
		for (const record of records) {
			if (record.seq >= end) return found
			found.push(record)
		}
		next = (records.at(-1)?.seq ?? end) + 1
	}
	return found
}
