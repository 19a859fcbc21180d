import { pageOf } from '../../../core/store/log-page.ts'
import type { PageRecord, PageRequest } from '../../../core/store/log-page.ts'
import type { LogPage } from '../../../core/store/ports.ts'
import { positionAt, seqOf } from './log-record.ts'
import type { LogSource } from './log-source.ts'

/** Limit of records that one page reads. */
const maxRecords = 2000

/** The cluster filters by run only: other filters read all records in order. */
export function readPage(source: LogSource, request: PageRequest): Promise<LogPage> {
	const from = async function* (after: number): AsyncGenerator<PageRecord> {
		const read = request.reverse ? source.backwards : source.forwards
		for await (const { seq, entries, size } of read(seqOf(after), request.filter.run_id))
			yield {
				position: positionAt(seq, entries.length - 1),
				read: () => ({ events: entries.map(({ event }) => event), size }),
			}
	}
	return pageOf(request, from, maxRecords)
}
