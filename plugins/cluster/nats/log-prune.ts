import { pruningOf, youngInARow } from '../../../core/store/prune.ts'
import type { Pruning } from '../../../core/store/prune.ts'
import { textOfError, unreachable } from './client.ts'
import type { Client } from './client.ts'
import type { LogSource } from './log-source.ts'
import type { Names } from './streams.ts'

interface PruneRequest extends Pruning {
	/** The position of the newest record, which is kept. */
	newest: number
	/** Called after the records at these positions, which belong to `runs`, were removed. */
	onRemoved: (seqs: ReadonlySet<number>, runs: ReadonlySet<string>) => void
}

/** Records that are removed at the same time, with one request each. */
const batch = 200
/** Records at the beginning of the log that one request removes. */
const purged = 10_000

/** Returns how many events were removed. A record is removed as a whole; a run loses only its oldest records. */
export async function pruneLog(
	client: Client,
	names: Names,
	source: LogSource,
	request: PruneRequest,
): Promise<number> {
	const { before, isKept } = pruningOf(request)
	/** Runs with a kept record, whose later records are kept as well. */
	const keptRuns = new Set<string>()
	let seqs = new Set<number>()
	let runs = new Set<string>()
	let removed = 0
	let young = 0
	/** No record was kept so far: one request removes all up to here. */
	let isBeginning = true
	const flush = async (): Promise<void> => {
		const all = [...seqs]
		const last = all.at(-1)
		if (last === undefined) return
		if (isBeginning) await purge(client, names, last + 1)
		else await Promise.all(all.map((seq) => deleteOne(client, names, seq)))
		request.onRemoved(seqs, runs)
		seqs = new Set()
		runs = new Set()
	}
	for await (const { seq, run, entries } of source.forwards(1)) {
		if (seq >= request.newest) break
		const isOld = entries.every(({ event }) => Date.parse(event.timestamp) < before)
		young = isOld ? 0 : young + 1
		const isExpired = isOld && !(run !== null && keptRuns.has(run)) && !(await isKept(run))
		if (!isExpired) {
			await flush()
			isBeginning = false
			if (run !== null) keptRuns.add(run)
			if (young >= youngInARow) break
			continue
		}
		seqs.add(seq)
		if (run !== null) runs.add(run)
		removed += entries.length
		if (seqs.size >= (isBeginning ? purged : batch)) await flush()
	}
	await flush()
	return removed
}

async function purge(client: Client, { events }: Names, seq: number): Promise<void> {
	const { error } = await client.api(`STREAM.PURGE.${events}`, { seq })
	if (error) throw unreachable(`old events cannot be removed: ${textOfError(error)}`)
}

async function deleteOne(client: Client, { events }: Names, seq: number): Promise<void> {
	const { error } = await client.api(`STREAM.MSG.DELETE.${events}`, { seq, no_erase: true })
	// It may already be gone if the answer to an earlier attempt was lost.
	if (error && error.code !== 404 && !/not found/i.test(error.description ?? ''))
		throw unreachable(`old events cannot be removed: ${textOfError(error)}`)
}
