/** Event streams that resume after a lost connection. They use fetch, since an EventSource cannot send a token. */
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { ApiError, send } from './api.ts'
import type { GatewayEvent } from './types.ts'

const LONGEST_WAIT_MS = 10_000

export interface StreamOptions {
	/** Query of GET /v1/events/stream. */
	query: Record<string, string>
	signal: AbortSignal
	onEvent: (event: GatewayEvent) => void
	/** Called when the stream was opened or lost. */
	onOpenChange?: (open: boolean) => void
}

/** Follows events until the signal aborts. Throws `ApiError` for a 4xx response other than 429. */
export async function follow({ query, signal, onEvent, onOpenChange }: StreamOptions): Promise<void> {
	let last: string | undefined
	for (let failures = 0; !signal.aborted; failures++) {
		try {
			const response = await send(`/v1/events/stream?${new URLSearchParams(query)}`, {
				signal,
				headers: { accept: 'text/event-stream', ...(last !== undefined && { 'last-event-id': last }) },
			})
			// If the connection is lost before the first event, the stream resumes from the position at which it began.
			last ??= response.headers.get('x-last-event-id') ?? undefined
			onOpenChange?.(true)
			failures = 0
			for await (const { id, data } of framesOf(response)) {
				last = id ?? last
				onEvent(JSON.parse(data) as GatewayEvent)
			}
		} catch (error) {
			if (signal.aborted) return
			onOpenChange?.(false)
			if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) throw error
		}
		onOpenChange?.(false)
		await pause(Math.min(LONGEST_WAIT_MS, 500 * 2 ** failures), signal)
	}
}

/**
 * As `follow`, for a page that shows no error if the gateway refuses the stream. Resolves once the stream is open, or refused: data
 * that is read after that misses no event.
 */
export function listen({ onOpenChange, ...options }: StreamOptions): Promise<void> {
	return new Promise((resolve) => {
		const opened = (open: boolean): void => {
			onOpenChange?.(open)
			resolve()
		}
		void follow({ ...options, onOpenChange: opened })
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
