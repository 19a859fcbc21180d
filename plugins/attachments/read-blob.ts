/** Reads blobs, which are stored in pieces. */
import { Fault } from '../../core/errors.ts'
import type { Store } from '../../core/store/ports.ts'
import { digestIn, keys } from './blob-keys.ts'
import type { BlobRecord } from './blob-keys.ts'
import type { Blob } from './contract.ts'

type Reader = Pick<Store, 'get'>

/** Undefined if the agent has no such blob. */
export async function findBlob(store: Reader, uid: string, blob: string): Promise<Blob | undefined> {
	const record = await recordOf(store, uid, blob)
	return record && { blob, media_type: record.media_type, size: record.size }
}

/** As `Blobs.read`. */
export async function readBlob(store: Reader, uid: string, blob: string): Promise<Uint8Array | undefined> {
	const record = await recordOf(store, uid, blob)
	if (!record) return undefined
	const bytes = new Uint8Array(record.size)
	let at = 0
	for await (const piece of piecesOf(store, uid, record)) {
		bytes.set(piece, at)
		at += piece.length
	}
	return at === record.size ? bytes : undefined
}

/** The bytes of a blob, piece by piece. Throws `not_found` if it is deleted during the read, so that a part never looks complete. */
export async function* readPieces(store: Reader, uid: string, blob: string): AsyncGenerator<Uint8Array> {
	const record = await recordOf(store, uid, blob)
	let size = 0
	for await (const piece of record ? piecesOf(store, uid, record) : []) {
		size += piece.length
		yield piece
	}
	if (size !== record?.size) throw new Fault('not_found', 'the blob was deleted during the read')
}

async function* piecesOf(store: Reader, uid: string, { upload, pieces }: BlobRecord): AsyncGenerator<Uint8Array> {
	for (let at = 0; at < pieces; at++) {
		const entry = await store.get<Uint8Array>(keys.piece(uid, upload, at))
		if (!entry) return
		yield entry.value
	}
}

async function recordOf(store: Reader, uid: string, blob: string): Promise<BlobRecord | undefined> {
	const digest = digestIn(blob)
	return digest === undefined ? undefined : (await store.get<BlobRecord>(keys.blob(uid, digest)))?.value
}
