import { Fault } from '../../../core/errors.ts'
import { matcher, positionOf } from '../../../core/store/events.ts'
import type { Cursor, LogFilter, LogPage } from '../../../core/store/ports.ts'
import { positionAt, seqOf } from './log-record.ts'
import type { LogSource } from './log-source.ts'

interface PageRequest {
	/** The newest position that subscribers have heard of. */
	head: number
	filter: LogFilter
	after: Cursor | null
	limit: number
	reverse: boolean
}

/** What one page reads at most, whatever its filter matches. */
const maxRecords = 2000
const maxBytes = 8 * 1024 * 1024

/** Only the run is looked up by the cluster: other filters read all records, in order. */
export async function readPage(source: LogSource, request: PageRequest): Promise<LogPage> {
	const { head, filter, limit, reverse } = request
	if (!(limit >= 1)) throw new Fault('invalid_request', 'the limit must be at least 1')
	const matches = matcher(filter)
	const after = request.after === null ? (reverse ? head + 1 : 0) : positionOf(request.after, head)
	const records = reverse ? source.backwards(seqOf(after), filter.run_id) : source.forwards(seqOf(after), filter.run_id)
	const found: LogPage['entries'] = []
	let at = after
	let count = 0
	let bytes = 0
	for await (const { seq, entries, size } of records) {
		if (positionAt(seq, 0) > head) {
			if (reverse) continue
			break
		}
		if (found.length >= limit || count >= maxRecords || bytes >= maxBytes) return { entries: found, next: String(at) }
		count++
		bytes += size
		const numbered = entries.map(({ event }, index) => ({ position: positionAt(seq, index), event }))
		for (const { position, event } of reverse ? numbered.toReversed() : numbered) {
			if (reverse ? position >= after : position <= after) continue
			if (found.length >= limit) return { entries: found, next: String(at) }
			at = position
			// A copy: a reader may change what it gets, and a record in memory is shared.
			if (matches(event)) found.push({ cursor: String(position), event: structuredClone(event) })
		}
	}
	return { entries: found, next: null }
}
