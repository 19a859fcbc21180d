/** A stream of events that resumes after broken connections. */
import { errorOf, GatewayError } from './error.ts'
import { framesOf } from './connection.ts'
import type { components } from './schema.d.ts'

export type GatewayEvent = components['schemas']['Event']

export interface FollowOptions {
	signal?: AbortSignal | undefined
	/** The `position` of the last event that is known already. */
	after?: string | undefined
	/** Consecutive attempts to connect without an event before the stream fails with `stream_lost`. Default 10. */
	attempts?: number | undefined
	/** Called for each connection that was lost or refused, before the next attempt. */
	onDisconnect?: ((error: unknown) => void) | undefined
}

/** An event, and the position from which a later stream continues after it. */
export interface Followed {
	event: GatewayEvent
	position: string
}

/** Opens a connection; `after`: the position to continue from, if there is one. */
export type Open = (after: string | undefined, signal: AbortSignal | undefined) => Promise<Response>

const RETRY_MS = 3000
const LONGEST_MS = 30_000
const LONGEST_RETRY_AFTER_MS = 60_000

/**
 * Yields events in order, each once, until `isLast` returns true for one, or until the signal aborts; then throws the signal's
 * reason. A lost connection is reopened after the last event. Throws `stream_lost` after `attempts`, `stream_gap` if events are
 * missing, and the gateway's error if it refuses the stream.
 *
 * Pieces of answers (`model.stream`) are not stored: those sent while the connection was lost are missing.
 * `message.assistant` has the complete answer.
 */
export async function* follow(
	open: Open,
	{ signal, after, attempts = 10, onDisconnect }: FollowOptions,
	isLast: (event: GatewayEvent) => boolean = () => false,
): AsyncGenerator<Followed> {
	let position = after
	let retry_ms = RETRY_MS
	let failures = 0
	for (;;) {
		let wait_ms = 0
		let isRefused = false
		try {
			const response = await open(position, signal)
			if (!response.ok) {
				isRefused = ![429, 502, 503, 504].includes(response.status)
				wait_ms = retryAfterOf(response)
				throw await errorOf(response)
			}
			position ??= response.headers.get('x-last-event-id') ?? undefined
			for await (const { id, data } of framesOf(response, (ms) => (retry_ms = ms), signal)) {
				failures = 0
				position = id
				const event = JSON.parse(data) as GatewayEvent
				yield { event, position }
				if (isLast(event)) return
			}
			throw new Error('the gateway ended the stream')
		} catch (error) {
			signal?.throwIfAborted()
			if (isRefused || (error instanceof GatewayError && error.code === 'stream_gap')) throw error
			if (++failures >= attempts)
				throw new GatewayError('stream_lost', `the stream was lost: ${attempts} attempts to connect failed`, {
					cause: error,
				})
			onDisconnect?.(error)
		}
		await pause(Math.max(wait_ms, Math.min(retry_ms * 2 ** (failures - 1), LONGEST_MS)), signal)
	}
}

/** In milliseconds, limited to the longest time that a gateway sends. A date, which proxies may send, is ignored. */
function retryAfterOf({ headers }: Response): number {
	const seconds = Number(headers.get('retry-after') ?? 0)
	return Number.isFinite(seconds) ? Math.min(1000 * seconds, LONGEST_RETRY_AFTER_MS) : 0
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
	const { promise, resolve, reject } = Promise.withResolvers<void>()
	const abort = (): void => reject(signal?.reason as Error)
	signal?.throwIfAborted()
	signal?.addEventListener('abort', abort, { once: true })
	const timer = setTimeout(() => resolve(), ms)
	try {
		await promise
	} finally {
		clearTimeout(timer)
		signal?.removeEventListener('abort', abort)
	}
}
