import { setImmediate as turn } from 'node:timers/promises'
import { Fault } from '../../errors.ts'
import { decodeValue } from '../codec.ts'
import { behind, splitKey } from '../keys.ts'
import type { Entry } from '../ports.ts'
import type { Table } from './tables.ts'
import { headerBytes, isIntact, stampOf } from './frame.ts'
import type { Writer } from './writer.ts'

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

/** The record under a joined key of the store. */
export function readEntry(table: Table, key: string): Entry<unknown> | undefined {
	const found = findRecord(table, key)
	return found && { key: splitKey(key), value: valueOf(table, key, found.bytes), rev: String(found.stamp) }
}

export interface KeyRange {
	/** The first key; with `reverse`, all keys are below it. */
	start: string
	/** All keys are below it; with `reverse`, the last key. */
	end: string
	reverse?: boolean
}

export function keysOf(table: Table, { start, end, reverse = false }: KeyRange, limit: number): string[] {
	return [...table.getKeys({ start, end, limit, reverse, exclusiveStart: reverse, inclusiveEnd: reverse })]
}

/**
 * The keys of a range, `size` at a time. Other work gets its turn between two batches, during which the store may be
 * closed: then throws `unavailable`.
 */
export async function* keyBatches(
	{ table, writer }: { table: Table; writer: Writer },
	range: KeyRange,
	size: number,
): AsyncGenerator<string[]> {
	let { start } = range
	for (;;) {
		writer.mustBeOpen()
		const keys = keysOf(table, { ...range, start }, size)
		yield keys
		if (keys.length < size) return
		const last = keys.at(-1) as string
		start = range.reverse ? last : behind(last)
		await turn()
	}
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
