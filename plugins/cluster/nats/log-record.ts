/** One append, stored as one message of the stream of events, with the server's time. */
import { decodeValue, encodeValue } from '../../../core/store/codec.ts'
import { invalid } from '../../../core/store/keys.ts'
import { entriesOf, rowOf } from '../../../core/store/log-rows.ts'
import type { LogRow } from '../../../core/store/log-rows.ts'
import type { LogEntry } from '../../../core/store/ports.ts'
import { unreadable } from './streams.ts'
import type { Names } from './streams.ts'

export interface LogRecord {
	/** The position of the message in the stream. */
	seq: number
	run: string | null
	/** The run's last sequence before this append: links the records of a run, so that a missing one is detected. */
	before: number
	entries: readonly LogEntry[]
	/** Bytes of the message. */
	size: number
}

/** Limit of entries of one append. The position of an event is that of its message times this, plus its index in the message. */
const ENTRIES = 4096

/** Throws as `encodeValue` does, and `invalid_request` for more than 4,096 entries. */
export function encodeRecord(run: string | null, before: number, entries: readonly LogEntry[]): Buffer {
	if (entries.length > ENTRIES) throw invalid(`one append may have at most ${ENTRIES} events`)
	return encodeValue([run, before, entries.map(rowOf)], 0)
}

/** Whether the gateway stores records under this subject. Other programs may publish messages under other subjects. */
export function isRecordSubject({ prefix }: Names, subject: string): boolean {
	const root = `${prefix}.ev.`
	return subject.startsWith(root) && /^(?:0\.[\w-]+|g\.\d+)$/.test(subject.slice(root.length))
}

/** Throws `store_damaged`, with the remedy, if the message of the stream cannot be read. */
export function recordOf(stream: string, { seq, data }: { seq: number; data: Buffer }): LogRecord {
	try {
		const [run, before, rows] = decodeValue(data, 0, data.length) as [string | null, number, LogRow[]]
		return { seq, run, before, entries: entriesOf(run, rows), size: data.length }
	} catch (error) {
		throw unreadable(`the message ${seq} of the stream ${stream}`, stream, seq, error)
	}
}

/** The position of an event in the log. */
export function positionAt(seq: number, index: number): number {
	return seq * ENTRIES + index
}

/** The message that holds the position. */
export function seqOf(position: number): number {
	return Math.floor(position / ENTRIES)
}
