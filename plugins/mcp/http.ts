/** The fetch function of the http and sse transports: limits the size, rate and number of requests. */
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import { Fault, isFault } from '../../core/errors.ts'
import type { GuardedFetcher, GuardedInit } from '../../core/fetch/guarded-fetch.ts'
import { FRAME_LIMIT_BYTES } from './stdio.ts'
import { openThrottle } from './throttle.ts'

/** Concurrent requests of one connection, event streams included. */
const OPEN_LIMIT = 64
/** Limit of a batch of messages, which may have two bytes each: the SDK handles a batch at once, on the main thread. */
const LIST_LIMIT_BYTES = 64 * 1024
const NEWLINE = 0x0a
const RETURN = 0x0d
const BRACKET = 0x5b
/** Of the fields of an event, only `id` begins with this letter. */
const LETTER_I = 0x69
/** Bytes that may precede JSON: white space and the byte order mark. */
const LEADING = new Set([0x09, NEWLINE, RETURN, 0x20, 0xef, 0xbb, 0xbf])

export type BoundedFetch = FetchLike & {
	/**
	 * Called if an event stream broke before its end and cannot be resumed, so that the missing events never arrive. `body`: of the
	 * request that the stream answers.
	 */
	onbroken?(body: unknown, error: unknown): void
}

/** `headers` override those of the transport. */
export function boundedFetch(fetcher: GuardedFetcher, headers: Record<string, string>): BoundedFetch {
	let open = 0
	const bounded: BoundedFetch = async (url, init = {}) => {
		if (open >= OPEN_LIMIT) throw new Fault('mcp_unavailable', `it has ${open} unanswered requests`)
		const { method, body, signal, redirect } = init as GuardedInit
		const all = new Headers(init.headers)
		for (const [name, value] of Object.entries(headers)) all.set(name, value)
		open++
		try {
			const response = await fetcher(url, { method, headers: all, body, signal, redirect })
			if (!response.body) {
				open--
				return response
			}
			const { status, statusText } = response
			const isStream = (response.headers.get('content-type') ?? '').includes('text/event-stream')
			const limited = bound(response.body, isStream, (broken) => {
				open--
				if (broken && isStream && !signal?.aborted) bounded.onbroken?.(body, broken.error)
			})
			return new Response(limited, { status, statusText, headers: response.headers })
		} catch (error) {
			open--
			throw error
		}
	}
	return bounded
}

/**
 * Limits the size of a body. A stream may be endless, so each of its events is limited; any other body is limited in total.
 * `ended` is called once, with the error if the stream broke and cannot be resumed. A stream can be resumed if its events have
 * ids, unless an event was too large.
 */
function bound(
	body: ReadableStream<Uint8Array>,
	isStream: boolean,
	ended: (broken?: { error: unknown }) => void,
): ReadableStream<Uint8Array> {
	const reader = body.getReader()
	const throttle = openThrottle()
	let size = 0
	let last = 0
	let endsLine = false
	let first: number | undefined
	let hasIds = false
	let isOver = false
	const end = (broken?: { error: unknown }): void => {
		if (isOver) return
		isOver = true
		ended(broken)
	}
	return new ReadableStream<Uint8Array>({
		async pull(controller) {
			try {
				const { done, value } = await reader.read()
				if (done) {
					end()
					controller.close()
					return
				}
				let wait = 0
				for (const byte of value) {
					size++
					const isSecondHalf = byte === NEWLINE && last === RETURN
					last = byte
					if (isSecondHalf) continue
					const endedLine = endsLine
					hasIds ||= byte === LETTER_I && (endedLine || size === 1)
					endsLine = byte === NEWLINE || byte === RETURN
					if (isStream && endsLine && endedLine) {
						wait = Math.max(wait, throttle(size))
						size = 0
					}
				}
				if (!isStream) first ??= value.find((byte) => !LEADING.has(byte))
				if (first === BRACKET && size > LIST_LIMIT_BYTES) {
					throw new Fault('fetch_too_large', `it sent a list of messages of more than ${LIST_LIMIT_BYTES} bytes`)
				}
				if (size > FRAME_LIMIT_BYTES) {
					throw new Fault('fetch_too_large', `it sent a message of more than ${FRAME_LIMIT_BYTES} bytes`)
				}
				if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
				controller.enqueue(value)
			} catch (error) {
				end(isFault(error, 'fetch_too_large') || !hasIds ? { error } : undefined)
				void reader.cancel(error).catch(() => {})
				controller.error(error)
			}
		},
		async cancel(reason) {
			end()
			await reader.cancel(reason)
		},
	})
}
