/** One connection of a stream of Server-Sent Events, from its response to its end. */
import { createParser } from 'eventsource-parser'
import { GatewayError } from './error.ts'

export interface Frame {
	/** The position in the log after this event. */
	id: string
	data: string
}

/** The gateway sends a comment after 15 s of silence: a connection that is silent for longer is dead. */
const SILENT_MS = 45_000
/** Characters of one event. */
const BUFFER_LIMIT = 16 * 1024 * 1024

/**
 * Yields the frames of a response. `retry` is called with the milliseconds that the gateway wants clients to wait before they
 * reconnect. Throws `stream_gap` if the gateway does not know the position from which to continue, and errors of the connection.
 */
export async function* framesOf(
	response: Response,
	retry: (ms: number) => void,
	signal: AbortSignal | undefined,
): AsyncGenerator<Frame> {
	const frames: Frame[] = []
	let gap = false
	const parser = createParser({
		onEvent: ({ id = '', data }) => void frames.push({ id, data }),
		onRetry: retry,
		onComment: (comment) => void (gap ||= comment.trim() === 'unknown position'),
		maxBufferSize: BUFFER_LIMIT,
	})
	const reader = (response.body as ReadableStream<Uint8Array>).getReader()
	const decoder = new TextDecoder()
	try {
		for (;;) {
			const { done, value } = await withinSilence(reader.read(), signal)
			if (done) return
			parser.feed(decoder.decode(value, { stream: true }))
			if (gap) throw new GatewayError('stream_gap', 'the gateway no longer has the events since the last one received')
			yield* frames.splice(0)
		}
	} finally {
		await reader.cancel().catch(() => {})
	}
}

async function withinSilence<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
	const { promise, reject } = Promise.withResolvers<never>()
	const silent = setTimeout(() => reject(new Error(`the gateway was silent for ${SILENT_MS / 1000} s`)), SILENT_MS)
	const abort = (): void => reject(signal?.reason as Error)
	signal?.addEventListener('abort', abort, { once: true })
	try {
		signal?.throwIfAborted()
		return await Promise.race([work, promise])
	} finally {
		clearTimeout(silent)
		signal?.removeEventListener('abort', abort)
	}
}
