/**
 * Writes a blob in pieces: a large blob is neither one record nor one transaction, and only a few pieces of it are in memory. Equal
 * bytes of one agent are stored once.
 */
import { createHash } from 'node:crypto'
import { Fault } from '../../core/errors.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { changeRecord } from '../../core/store/change.ts'
import type { Op, Rev, Store } from '../../core/store/ports.ts'
import { newId, now } from '../../core/util/ids.ts'
import { blobName, keys } from './blob-keys.ts'
import type { BlobRecord, LooseRecord, TotalRecord } from './blob-keys.ts'
import { deleteLoose } from './blob-uses.ts'
import type { Blob } from './contract.ts'
import { HEAD_BYTES } from '../../sandbox/text-type.ts'
import { mediaTypeOf } from './media-type.ts'

export interface BlobLimits {
	max_bytes: number
	/** Of all blobs of the agent. */
	max_bytes_per_agent: number
}

/** LMDB stores a piece in consecutive pages, and a reader has one piece in memory. */
const PIECE_BYTES = 256 * 1024
/** Pieces per commit. */
const PIECES = 8

/**
 * Stores bytes as they arrive. `about`: the sender's name and type for them. Durable when this resolves. A blob that no run uses
 * within an hour is deleted. Throws `payload_too_large`, `invalid_request` for no bytes, and the errors of `source`.
 */
export async function writeBlob(
	store: Store,
	uid: string,
	source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
	about: { name?: string | undefined; media_type?: string | undefined },
	{ max_bytes, max_bytes_per_agent }: BlobLimits,
): Promise<Blob> {
	const upload = newId()
	const hash = createHash('sha256')
	let size = 0
	let pieces = 0
	let head = Buffer.alloc(0)
	let rest: Uint8Array[] = []
	let unwritten: Op[] = []
	let loose: Rev | undefined

	const cut = (): void => {
		unwritten.push({ key: keys.piece(uid, upload, pieces++), value: new Uint8Array(Buffer.concat(rest)) })
		rest = []
	}
	const flush = async (): Promise<void> => {
		const mark: Op = { key: keys.loose(uid, upload), value: { at: now() } satisfies LooseRecord, expect: null }
		const [first] = await store.commit(agentScope(uid), loose === undefined ? [mark, ...unwritten] : unwritten)
		loose ??= first
		unwritten = []
	}

	try {
		for await (const bytes of source) {
			size += bytes.length
			if (size > max_bytes) throw tooLarge(max_bytes)
			hash.update(bytes)
			if (head.length < HEAD_BYTES) head = Buffer.concat([head, bytes.subarray(0, HEAD_BYTES - head.length)])
			for (let at = 0; at < bytes.length;) {
				const room = PIECE_BYTES - rest.reduce((sum, part) => sum + part.length, 0)
				rest.push(bytes.subarray(at, at + room))
				at += room
				if (at > bytes.length) continue
				cut()
				if (unwritten.length === PIECES) await flush()
			}
		}
		if (size === 0) throw new Fault('invalid_request', 'an attachment must not be empty')
		if (rest.length > 0) cut()
		const digest = hash.digest('hex')
		const media_type = mediaTypeOf(head, about)
		const blob: BlobRecord = { upload, pieces, size, media_type, uses: 0, at: now() }
		const kept = await publish(store, uid, digest, blob, { unwritten, loose, max_bytes_per_agent })
		if (kept.upload !== upload && loose !== undefined) await deleteLoose(store, uid, upload)
		return { blob: blobName(digest), media_type: kept.media_type, size }
	} catch (error) {
		if (loose !== undefined) await deleteLoose(store, uid, upload).catch(() => {}) // collected later
		throw error
	}
}

interface UploadEnd {
	/** The last pieces. */
	unwritten: readonly Op[]
	/** Revision of the record at `keys.loose`, if pieces were written. If that record is gone, the pieces were deleted. */
	loose: Rev | undefined
	max_bytes_per_agent: number
}

/** Returns the record under the digest: the given one, or that of an earlier upload of the same bytes. */
function publish(
	store: Store,
	uid: string,
	digest: string,
	blob: BlobRecord,
	{ unwritten, loose, max_bytes_per_agent }: UploadEnd,
): Promise<BlobRecord> {
	return changeRecord<BlobRecord, BlobRecord>(store, keys.blob(uid, digest), async (known) => {
		if (known) return { next: known.uses > 0 ? undefined : { ...known, at: blob.at }, result: known }
		if (loose !== undefined && (await store.get(keys.loose(uid, blob.upload)))?.rev !== loose)
			throw new Fault('unavailable', 'the upload took more than an hour; send it again')
		const total = await store.get<TotalRecord>(keys.total(uid))
		const bytes = (total?.value.bytes ?? 0) + blob.size
		if (bytes > max_bytes_per_agent) throw full(max_bytes_per_agent)
		const ops: Op[] = [
			...unwritten,
			{ key: keys.total(uid), value: { bytes } satisfies TotalRecord, expect: total?.rev ?? null },
		]
		if (loose !== undefined) ops.push({ key: keys.loose(uid, blob.upload), value: undefined, expect: loose })
		return { next: blob, ops, result: blob }
	})
}

export function tooLarge(bytes: number): Fault {
	return new Fault(
		'payload_too_large',
		`an attachment may have at most ${bytes} bytes (attachments.max_mib); send a smaller one`,
	)
}

function full(bytes: number): Fault {
	return new Fault(
		'payload_too_large',
		`the attachments of this agent would take more than ${bytes} bytes (attachments.max_mib_per_agent); delete conversations, or raise the limit`,
	)
}
