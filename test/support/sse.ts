/** A small client of the event stream for tests: it uses real HTTP, and waits only for conditions. */
import http from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { createParser } from 'eventsource-parser'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { WAIT_LIMIT_MS, openWatch } from './wait.ts'

export interface StreamOptions {
	token?: string
	/** Sent as the header Last-Event-ID. */
	lastEventId?: string
	query?: Record<string, string>
	headers?: Record<string, string>
	/** Default `/v1/events/stream`. */
	path?: string
	/** Sent as JSON by POST; by default it is a GET. */
	body?: unknown
}

export interface TestStream {
	status: number
	headers: IncomingHttpHeaders
	/** All events so far, in order of arrival. */
	events: EventEnvelope[]
	/** The id of each event. */
	ids: string[]
	comments: string[]
	/** The server's reconnection delay in milliseconds. */
	retry: number | undefined
	/** The position to resume from: the last id, which may have come without an event. */
	lastEventId: string
	/** The n-th event (1 is the first) of a type, or for which `wanted` returns true; it may have arrived before. */
	waitFor(wanted: string | ((event: EventEnvelope) => boolean), n?: number): Promise<EventEnvelope>
	/** Settles once `condition` holds, which is checked whenever data arrives. */
	until(condition: () => boolean, what: string): Promise<void>
	/** Destroys the connection. */
	close(): void
	/** How the stream ended: `end` by the server, `cut` by a broken connection, `closed` by this side. */
	closed: Promise<'end' | 'cut' | 'closed'>
}

/** Opens a stream at a gateway's `url`. Throws with status and body unless the status is 200. */
export async function openStream(url: string, options: StreamOptions = {}): Promise<TestStream> {
	const response = await ask(url, options)
	if (response.statusCode !== 200) {
		throw new Error(`the stream was answered with ${response.statusCode}: ${await textOf(response)}`)
	}
	return follow(response)
}

function ask(url: string, options: StreamOptions): Promise<IncomingMessage> {
	const { token, lastEventId, query, headers, path = '/v1/events/stream', body } = options
	const address = new URL(path, url)
	for (const [name, value] of Object.entries(query ?? {})) address.searchParams.set(name, value)
	return new Promise((resolve, reject) => {
		const request = http.request(address, {
			agent: false,
			method: body === undefined ? 'GET' : 'POST',
			headers: {
				accept: 'text/event-stream',
				...(body !== undefined && { 'content-type': 'application/json' }),
				...(token !== undefined && { authorization: `Bearer ${token}` }),
				...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
				...headers,
			},
		})
		request.once('response', resolve)
		request.once('error', reject)
		request.end(body === undefined ? undefined : JSON.stringify(body))
	})
}

async function textOf(response: IncomingMessage): Promise<string> {
	let text = ''
	for await (const part of response.setEncoding('utf8')) text += String(part)
	return text
}

function follow(response: IncomingMessage): TestStream {
	const ended = Promise.withResolvers<'end' | 'cut' | 'closed'>()
	const watch = openWatch()
	let isClosedHere = false
	let isOver: string | undefined

	const stream: TestStream = {
		status: response.statusCode ?? 0,
		headers: response.headers,
		events: [],
		ids: [],
		comments: [],
		retry: undefined,
		// A client that is cut off before its first event resumes from here.
		lastEventId: String(response.headers['x-last-event-id'] ?? ''),
		async waitFor(wanted, n = 1) {
			const matches = typeof wanted === 'string' ? (event: EventEnvelope) => event.event_type === wanted : wanted
			let found: EventEnvelope | undefined
			let count = 0
			let next = 0
			const isFound = (): boolean => {
				for (; !found && next < stream.events.length; next++) {
					const event = stream.events[next] as EventEnvelope
					if (matches(event) && ++count === n) found = event
				}
				return found !== undefined
			}
			await stream.until(isFound, `event ${n} of ${String(wanted)}`)
			return found as unknown as EventEnvelope
		},
		async until(condition, what) {
			const failure = (why: string): string => {
				const types = stream.events.map((event) => event.event_type)
				const shown = types.length > 60 ? `… ${types.slice(-60).join(' ')}` : types.join(' ')
				return `${why} before ${what}; ${types.length} events seen: ${shown}`
			}
			await watch.until(
				() => {
					if (condition()) return true
					if (isOver !== undefined) throw new Error(failure(`the stream ended (${isOver})`))
					return undefined
				},
				() => failure(`${WAIT_LIMIT_MS / 1000} s passed`),
			)
		},
		close() {
			isClosedHere = true
			response.destroy()
		},
		closed: ended.promise,
	}

	const parser = createParser({
		onEvent: ({ data, id }) => {
			stream.events.push(JSON.parse(data) as EventEnvelope)
			stream.ids.push(id ?? '')
		},
		onId: (id) => (stream.lastEventId = id),
		onComment: (comment) => stream.comments.push(comment),
		onRetry: (ms) => (stream.retry = ms),
	})
	response.setEncoding('utf8')
	response.on('data', (text: string) => {
		parser.feed(text)
		watch.check()
	})
	response.on('error', () => {}) // after a broken connection, `complete` is false
	response.once('close', () => {
		isOver = isClosedHere ? 'closed' : response.complete ? 'end' : 'cut'
		ended.resolve(isOver as 'end' | 'cut' | 'closed')
		watch.check()
	})
	return stream
}
