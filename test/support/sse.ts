/** A small client of the event stream for tests: real HTTP, and waiting by condition only. */
import http from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { createParser } from 'eventsource-parser'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { WAIT_LIMIT_MS } from './wait.ts'

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
	/** All events so far, in the order in which they came. */
	events: EventEnvelope[]
	/** The id of each of them. */
	ids: string[]
	comments: string[]
	/** Milliseconds that the server said to wait before connecting again. */
	retry: number | undefined
	/** Where to go on: the last id, also one that came without an event. */
	lastEventId: string
	/** The n-th event (1 is the first) of a type, or that a test of yours lets through; also one that came before. */
	waitFor(wanted: string | ((event: EventEnvelope) => boolean), n?: number): Promise<EventEnvelope>
	/** Settles once `condition` holds, which is tried whenever something came in. */
	until(condition: () => boolean, what: string): Promise<void>
	/** Goes away without a word. */
	close(): void
	/** How it ended: `end` with a proper end, `cut` in the middle, `closed` by this side. */
	closed: Promise<'end' | 'cut' | 'closed'>
}

/** Opens a stream at a gateway's `url`. Throws with status and body where the answer is not 200. */
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
	const checks = new Set<() => void>()
	const look = (): void => {
		for (const check of checks) check()
	}
	let byUs = false
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
			let looked = 0
			const isThere = (): boolean => {
				for (; !found && looked < stream.events.length; looked++) {
					const event = stream.events[looked] as EventEnvelope
					if (matches(event) && ++count === n) found = event
				}
				return found !== undefined
			}
			await stream.until(isThere, `event ${n} of ${String(wanted)}`)
			return found as unknown as EventEnvelope
		},
		until(condition, what) {
			const { promise, resolve, reject } = Promise.withResolvers<void>()
			const fail = (why: string): void => {
				const seen = stream.events.map((event) => event.event_type)
				const shown = seen.length > 60 ? `… ${seen.slice(-60).join(' ')}` : seen.join(' ')
				reject(new Error(`${why} before ${what}; ${seen.length} events seen: ${shown}`))
			}
			const check = (): void => {
				if (condition()) resolve()
				else if (isOver !== undefined) fail(`the stream ended (${isOver})`)
			}
			const timer = setTimeout(() => fail(`${WAIT_LIMIT_MS / 1000} s passed`), WAIT_LIMIT_MS)
			checks.add(check)
			check()
			return promise.finally(() => {
				clearTimeout(timer)
				checks.delete(check)
			})
		},
		close() {
			byUs = true
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
		look()
	})
	response.on('error', () => {}) // a cut shows as `complete` being false
	response.once('close', () => {
		isOver = byUs ? 'closed' : response.complete ? 'end' : 'cut'
		ended.resolve(isOver as 'end' | 'cut' | 'closed')
		look()
	})
	return stream
}
