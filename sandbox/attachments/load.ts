/** Loads the bytes of a request's attachments, which an order does not contain. */
import { isTextType } from '../text-type.ts'
import type { Attachment } from '../../core/protocol.ts'
import type { ModelRequest } from '../models/provider.ts'

export type ReadBlob = (attachment: Attachment) => Promise<Uint8Array | null>

/** Limit of the bytes in one request, newest attachments first; the others are described in words. Most providers accept about as much. */
const REQUEST_BYTES = 20 * 1024 * 1024
/** Limit of the bytes that a thread caches for the next requests of its runs. */
const CACHE_BYTES = 40 * 1024 * 1024

/** By run and blob, since text is redacted for each run; least recently used first. */
const cache = new Map<string, Uint8Array>()
let cached = 0

/** The request with the bytes of its attachments. */
export async function withFiles(request: ModelRequest, read: ReadBlob): Promise<ModelRequest> {
	const wanted = new Map<string, Attachment>()
	let bytes = 0
	for (const turn of request.turns.toReversed()) {
		if (turn.role === 'assistant') continue
		for (const attachment of turn.attachments ?? []) {
			if (!isShowable(attachment) || wanted.has(attachment.blob)) continue
			bytes += attachment.size
			if (bytes > REQUEST_BYTES) bytes -= attachment.size
			else wanted.set(attachment.blob, attachment)
		}
	}
	if (wanted.size === 0) return request
	const files = new Map<string, Uint8Array>()
	for (const attachment of wanted.values()) {
		const found = await read(attachment)
		if (found) files.set(attachment.blob, found)
	}
	return { ...request, files }
}

/** Reads for one run through the cache of the thread. Resolves to null if the blob cannot be read because the run ends. */
export function cachedReader(run_id: string, read: ReadBlob): ReadBlob {
	return async (attachment) => {
		const key = `${run_id} ${attachment.blob}`
		const bytes = cache.get(key) ?? (await read(attachment).catch(() => null))
		if (!bytes) return null
		// Two concurrent reads of one blob count once.
		if (cache.delete(key)) cached -= bytes.length
		cache.set(key, bytes)
		cached += bytes.length
		for (const [oldest, { length }] of cache) {
			if (cached <= CACHE_BYTES) break
			cache.delete(oldest)
			cached -= length
		}
		return bytes
	}
}

/** Whether any dialect can send its bytes. */
function isShowable({ type, media_type, transcript }: Attachment): boolean {
	if (type === 'audio') return typeof transcript !== 'string'
	return type === 'image' || media_type === 'application/pdf' || isTextType(media_type)
}
