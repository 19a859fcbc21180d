/** The mark of the format in an LMDB folder: the record `format` of `meta`, with the format as its stamp. */
import type { FormatMark } from '../format.ts'
import { findRecord, headerBytes, sealValue, valueOf } from './record.ts'
import { keysOf } from './tables.ts'
import type { Table, Tables } from './tables.ts'
import type { Writer } from './writer.ts'

const key = 'format'

/**
 * Undefined for an empty folder. Records without a mark are those of version 0.1.0, which could not write it while the disk
 * was full.
 */
export function readMark({ meta, records, log }: Pick<Tables, 'meta' | 'records' | 'log'>): FormatMark | undefined {
	const found = findRecord(meta, key)
	if (found) {
		const { stamp, bytes } = found
		// Version 0.1.0 wrote the stamp alone.
		const body = bytes.length > headerBytes ? (valueOf(meta, key, bytes) as Omit<FormatMark, 'format'>) : {}
		return { ...body, format: stamp }
	}
	return isEmpty(records) && isEmpty(log) ? undefined : { format: 1 }
}

/** Settles once it is durable. */
export function writeMark({ meta }: Pick<Tables, 'meta'>, writer: Writer, mark: FormatMark): Promise<void> {
	const { format, ...body } = mark
	return writer.write([{ table: meta, key, bytes: sealValue(key, format, body) }])
}

function isEmpty(table: Table): boolean {
	return keysOf(table, { start: '\u0001', end: '\u{10ffff}' }, 1).length === 0
}
