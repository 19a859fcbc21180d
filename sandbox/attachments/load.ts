/** Gets the bytes of what a request shows, when it is made: an order holds none. */
import { isTextType } from '../text-type.ts'
import type { Attachment } from '../../core/protocol.ts'
import type { ModelRequest } from '../models/provider.ts'

export type ReadBlob = (attachment: Attachment) => Promise<Uint8Array | null>

/** Bytes that one request shows, the newest first: the others are described in words. Providers take about so much. */
const REQUEST_BYTES = 20 * 1024 * 1024
/** Bytes that a thread keeps, for the next requests of its runs. */
const CACHE_BYTES = 40 * 1024 * 1024

/** By run and blob, oldest use first: text is redacted for each run. */
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

/** Reads for one run, through the cache of the thread. What cannot be read, since the run ends, is not there. */
export function cachedReader(run_id: string, read: ReadBlob): ReadBlob {
	return async (attachment) => {
		const key = `${run_id} ${attachment.blob}`
		const bytes = cache.get(key) ?? (await read(attachment).catch(() => null))
		if (!bytes) return null
		// Read by two requests at the same time, it counts once.
		if (cache.delete(key)) cached -= bytes.length
		cache.set(key, bytes)
		cached += bytes.length
		for (const [oldest, its] of cache) {
			if (cached <= CACHE_BYTES) break
			cache.delete(oldest)
			cached -= its.length
		}
		return bytes
	}
}

/** Whether some dialect can make use of its bytes. */
function isShowable({ type, media_type, transcript }: Attachment): boolean {
	if (type === 'audio') return typeof transcript !== 'string'
	return type === 'image' || media_type === 'application/pdf' || isTextType(media_type)
}
