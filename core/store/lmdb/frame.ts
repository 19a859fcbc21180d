/**
 * The layout of a record in LMDB:
 *
 *     checksum (uint32 LE) · stamp (float64 LE) · body
 *
 * LMDB has no checksums of its own. This one is the CRC-32 of stamp and body, begun with the CRC-32 of the key, so that
 * an intact record under another key is detected too. It costs 0.3 µs for a record of 400 bytes. The stamp is
 * a revision in the table of records, a time in the log. The check at start imports this file: it must stay small.
 */
import { crc32 } from 'node:zlib'

const stampAt = 4
export const headerBytes = 12

/** Writes the header of `record`, whose body begins after `headerBytes` free bytes. */
export function seal(key: string, stamp: number, record: Buffer): Buffer {
	record.writeDoubleLE(stamp, stampAt)
	record.writeUInt32LE(checksum(key, record), 0)
	return record
}

/** Whether `record` is what was sealed under `key`. */
export function isIntact(key: string, record: Buffer): boolean {
	return record.length >= headerBytes && record.readUInt32LE(0) === checksum(key, record)
}

export function stampOf(record: Buffer): number {
	return record.readDoubleLE(stampAt)
}

function checksum(key: string, record: Buffer): number {
	return crc32(record.subarray(stampAt), crc32(key))
}
