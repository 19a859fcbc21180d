/** The requests of an http or sse server's transport: bounded in size, in rate and in number. */
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import { Fault } from '../../core/errors.ts'
import type { GuardedFetcher, GuardedInit } from '../../core/guarded-fetch.ts'
import { FRAME_LIMIT_BYTES } from './stdio.ts'
import { openThrottle } from './throttle.ts'

/** Requests of one connection that are under way, streams of events included. */
const OPEN_LIMIT = 64
const NEWLINE = 0x0a
const RETURN = 0x0d

/** `headers` win over those that the transport sets. */
export function boundedFetch(fetcher: GuardedFetcher, headers: Record<string, string>): FetchLike {
	let open = 0
	return async (url, init = {}) => {
		if (open >= OPEN_LIMIT)
			throw new Fault('mcp_unavailable', `it has ${open} requests under way that it does not answer`)
		const { method, body, signal, redirect } = init as GuardedInit
		const all = new Headers(init.headers)
		for (const [name, value] of Object.entries(headers)) all.set(name, value)
		open++
		try {
			const response = await fetcher(url, {
				headers: all,
				...(method !== undefined && { method }),
				...(body !== undefined && { body }),
				...(signal && { signal }),
				...(redirect !== undefined && { redirect }),
			})
			if (!response.body) {
				open--
				return response
			}
			const { status, statusText } = response
			const isStream = (response.headers.get('content-type') ?? '').includes('text/event-stream')
			const bounded = bound(response.body, isStream, () => open--)
			return new Response(bounded, { status, statusText, headers: response.headers })
		} catch (error) {
			open--
			throw error
		}
	}
}

/** A stream may go on for ever, but none of its events; anything else is bounded as a whole. */
function bound(body: ReadableStream<Uint8Array>, isStream: boolean, ended: () => void): ReadableStream<Uint8Array> {
	const reader = body.getReader()
	const throttle = openThrottle()
	let size = 0
	let last = 0
	let over = false
	const end = (): void => {
		if (!over) ended()
		over = true
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
					if (byte === RETURN) continue
					if (isStream && byte === NEWLINE && last === NEWLINE) {
						wait = Math.max(wait, throttle.take(size))
						size = 0
					}
					last = byte
				}
				if (size > FRAME_LIMIT_BYTES) {
					throw new Fault('fetch_too_large', `it sent a message of more than ${FRAME_LIMIT_BYTES} bytes`)
				}
				if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
				controller.enqueue(value)
			} catch (error) {
				end()
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
