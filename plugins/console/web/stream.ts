/** Event streams that resume where they broke. By fetch: an EventSource could send no token. */
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { ApiError, send } from './api.ts'
import type { GatewayEvent } from './types.ts'

const LONGEST_WAIT_MS = 10_000

export interface StreamOptions {
	/** Query of GET /v1/events/stream. */
	query: Record<string, string>
	signal: AbortSignal
	heard: (event: GatewayEvent) => void
	/** Whether the stream is open now. */
	isOpen?: (open: boolean) => void
}

/** Until the signal aborts, or the gateway refuses for good. */
export async function follow({ query, signal, heard, isOpen }: StreamOptions): Promise<void> {
	let last: string | undefined
	for (let failures = 0; !signal.aborted; failures++) {
		try {
			const response = await send(`/v1/events/stream?${new URLSearchParams(query)}`, {
				signal,
				headers: { accept: 'text/event-stream', ...(last !== undefined && { 'last-event-id': last }) },
			})
			// Where nothing comes before it breaks, it resumes from where it began.
			last ??= response.headers.get('x-last-event-id') ?? undefined
			isOpen?.(true)
			failures = 0
			for await (const { id, data } of framesOf(response)) {
				last = id ?? last
				heard(JSON.parse(data) as GatewayEvent)
			}
		} catch (error) {
			if (signal.aborted) return
			isOpen?.(false)
			if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) throw error
		}
		isOpen?.(false)
		await pause(Math.min(LONGEST_WAIT_MS, 500 * 2 ** failures), signal)
	}
}

/**
 * The same for a page, which shows no error where the gateway refuses. Settles once the stream is open, or refused: what is read
 * from then on misses nothing.
 */
export function listen({ isOpen, ...options }: StreamOptions): Promise<void> {
	return new Promise((resolve) => {
		const opened = (open: boolean): void => {
			isOpen?.(open)
			resolve()
		}
		void follow({ ...options, isOpen: opened })
			.catch(() => {})
			.finally(resolve)
	})
}

/** The frames of one response, to its end. */
async function* framesOf(response: Response): AsyncGenerator<{ id?: string | undefined; data: string }> {
	if (!response.body) return
	const decoder = new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>
	const reader = response.body.pipeThrough(decoder).pipeThrough(new EventSourceParserStream()).getReader()
	try {
		for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value
	} finally {
		void reader.cancel().catch(() => {})
	}
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
	return new Promise((resolve) => {
		const timer = setTimeout(resolve, ms)
		signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
	})
}
