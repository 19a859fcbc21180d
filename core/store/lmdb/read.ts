import { Fault } from '../../errors.ts'
import { decodeValue } from '../codec.ts'
import type { Table } from './tables.ts'
import { headerBytes, isIntact, stampOf } from './frame.ts'

/** A record as read, valid until the next read: the bytes are LMDB's own buffer. */
export interface Found {
	bytes: Buffer
	stamp: number
}

/** Throws `store_damaged` if the record is not what was written. */
export function findRecord(table: Table, key: string): Found | undefined {
	// All reads share the buffer, which is much longer than the record; its `length` is the length of the record.
	const shared = table.getBinaryFast(key)
	if (!shared) return undefined
	const bytes = shared.subarray(0, shared.length)
	if (!isIntact(key, bytes)) throw damaged(table, key)
	return { bytes, stamp: stampOf(bytes) }
}

/** The value in a sealed record. `key` is for the message of `store_damaged`. */
export function valueOf(table: Table, key: string, bytes: Buffer): unknown {
	try {
		return decodeValue(bytes, headerBytes, bytes.length)
	} catch (error) {
		throw damaged(table, key, error)
	}
}

/** Keys of `table` from `start`, below `end`; with `reverse`, downwards from `start` to `end`, both included. */
export function keysOf(
	table: Table,
	range: { start: string; end: string; limit: number; reverse?: boolean },
): string[] {
	return [...table.getKeys(range.reverse ? { ...range, inclusiveEnd: true } : range)]
}

export function damaged(table: Table, key: string, cause?: unknown): Fault {
	return new Fault(
		'store_damaged',
		`the record ${JSON.stringify(key.split('\0'))} (table ${tableName(table)}) is damaged on the disk: restore a backup`,
		{ cause },
	)
}

function tableName(table: Table): string {
	return (table as unknown as { name: string }).name
}
