/**
 * The layout of a record in LMDB:
 *
 *     checksum (uint32 LE) · stamp (float64 LE) · body
 *
 * LMDB has no checksums. This one is the CRC-32 of stamp and body, seeded with the CRC-32 of the key, so that an intact
 * record under another key is detected too. It costs 0.3 µs for a record of 400 bytes. The stamp is a revision in the table
 * of records, a time in the log. Code that reads the file without LMDB imports this file, so it must not import LMDB.
 */
import { crc32 } from 'node:zlib'
import { Fault } from '../../errors.ts'
import { decodeValue, encodeValue } from '../codec.ts'
import { splitKey } from '../keys.ts'
import type { Entry } from '../ports.ts'
import type { Table } from './tables.ts'

const stampAt = 4
export const headerBytes = 12

/** The bytes to store under `key`. Throws as `encodeValue` does. */
export function sealValue(key: string, stamp: number, value: unknown): Buffer {
	return seal(key, stamp, encodeValue(value, headerBytes))
}

/** The bytes of a record that has a stamp and no body. */
export function sealStamp(key: string, stamp: number): Buffer {
	return seal(key, stamp, Buffer.alloc(headerBytes))
}

/** Whether `record` has the checksum of what was sealed under `key`. */
export function isIntact(key: string, record: Buffer): boolean {
	return record.length >= headerBytes && record.readUInt32LE(0) === checksum(key, record)
}

/**
 * The record as read; `bytes` is LMDB's own buffer, valid until the next read. Throws `store_damaged` if it is not what was
 * written.
 */
export function findRecord(table: Table, key: string): { bytes: Buffer; stamp: number } | undefined {
	// All reads share the buffer, which is much longer than the record; its `length` is the length of the record.
	const shared = table.getBinaryFast(key)
	if (!shared) return undefined
	const bytes = shared.subarray(0, shared.length)
	if (!isIntact(key, bytes)) throw damaged(table, key)
	return { bytes, stamp: bytes.readDoubleLE(stampAt) }
}

/** The value in a sealed record. `key` is for the message of `store_damaged`. */
export function valueOf(table: Table, key: string, bytes: Buffer): unknown {
	try {
		return decodeValue(bytes, headerBytes, bytes.length)
	} catch (error) {
		throw damaged(table, key, error)
	}
}

/** The record under a joined key of the store, and its size. */
export function readEntry(table: Table, key: string): { entry: Entry<unknown>; bytes: number } | undefined {
	const found = findRecord(table, key)
	if (!found) return undefined
	const entry = { key: splitKey(key), value: valueOf(table, key, found.bytes), rev: String(found.stamp) }
	return { entry, bytes: found.bytes.length }
}

/** The error for a record whose checksum or content is wrong. */
export function damaged(table: Table, key: string, cause?: unknown): Fault {
	const { name } = table as unknown as { name: string } // not in lmdb's types
	return new Fault(
		'store_damaged',
		`the record ${JSON.stringify(key.split('\0'))} (table ${name}) is damaged on the disk: restore a backup`,
		{ cause },
	)
}

/** Writes the header of `record`, whose body begins after `headerBytes` free bytes. */
function seal(key: string, stamp: number, record: Buffer): Buffer {
	record.writeDoubleLE(stamp, stampAt)
	record.writeUInt32LE(checksum(key, record), 0)
	return record
}

function checksum(key: string, record: Buffer): number {
	return crc32(record.subarray(stampAt), crc32(key))
}
