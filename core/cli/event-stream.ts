/** Reads the event stream as one sequence of events, however often the connection is lost. */
import { setTimeout as wait } from 'node:timers/promises'
import { createParser } from 'eventsource-parser'
import type { EventEnvelope } from '../store/ports.ts'
import { notAGateway, send } from './connection.ts'
import type { Connection } from './connection.ts'
import { CliError } from './contract.ts'
import type { EventOptions, StreamedEvent } from './contract.ts'

/** The gateway sends something every 15 s; a connection that is silent for this long is dead. */
const SILENCE_MS = 45_000
const FIRST_DELAY_MS = 250
const DELAY_LIMIT_MS = 5_000
/** Of one event, in characters. */
const BUFFER_LIMIT = 16 * 1024 * 1024

/**
 * Events from now on, or after a cursor, until the signal aborts. Throws a CliError if the first connection fails or the gateway
 * refuses the request. A connection that is lost later is reopened at the last position, any number of times.
 */
export async function* follow(
	connection: Connection,
	query: Record<string, string>,
	{ after, opened, lost, signal = new AbortController().signal }: EventOptions,
): AsyncGenerator<StreamedEvent> {
	const path = `/v1/events/stream?${new URLSearchParams(query).toString()}`
	let cursor = after
	let begun = false
	let delay = FIRST_DELAY_MS
	while (!signal.aborted) {
		try {
			for await (const found of connect(connection, path, cursor, signal, !begun)) {
				delay = FIRST_DELAY_MS
				if (found === 'open') {
					begun = true
					opened?.()
					continue
				}
				cursor = found.cursor ?? cursor
				if (found.event) yield { cursor: found.cursor, event: found.event }
			}
		} catch (error) {
			if (signal.aborted) return
			const canRetry = !(error instanceof CliError) || error.exit === 'unavailable'
			if (!begun || !canRetry) throw error
		}
		if (signal.aborted) return
		lost?.()
		await wait(delay, undefined, { signal }).catch(() => {})
		delay = Math.min(delay * 2, DELAY_LIMIT_MS)
	}
}

interface StreamEntry {
	cursor: string | undefined
	/** Absent if only the position moved. */
	event?: EventEnvelope
}

/** One connection, until it ends or is lost. */
async function* connect(
	connection: Connection,
	path: string,
	cursor: string | undefined,
	signal: AbortSignal,
	isFirst: boolean,
): AsyncGenerator<StreamEntry | 'open'> {
	const silence = new AbortController()
	using watchdog = setTimeout(() => silence.abort(), SILENCE_MS)
	try {
		const response = await send(connection, path, {
			signal: AbortSignal.any([signal, silence.signal]),
			headers: { accept: 'text/event-stream', ...(cursor !== undefined && { 'last-event-id': cursor }) },
		})
		if (!response.headers.get('content-type')?.startsWith('text/event-stream')) throw notAGateway(connection.url())
		const start = response.headers.get('x-last-event-id')
		if (cursor === undefined && start !== null) yield { cursor: start }
		yield 'open'
		const found: StreamEntry[] = []
		let position: string | undefined
		const parser = createParser({
			onEvent: ({ id, data }) => found.push({ cursor: id, event: JSON.parse(data) as EventEnvelope }),
			onId: (id) => (position = id),
			onComment(text) {
				if (isFirst && text.trim() === 'unknown position')
					throw new CliError(
						'usage',
						`the gateway does not know the position "${cursor}"; give a time such as 10m, or a cursor or event id`,
					)
			},
			maxBufferSize: BUFFER_LIMIT,
		})
		const decoder = new TextDecoder()
		let end = ''
		for await (const part of response.body ?? []) {
			watchdog.refresh()
			const text = decoder.decode(part, { stream: true })
			parser.feed(text)
			end = (end + text).slice(-2)
			// The first comment and keep-alives move the position without an event. Within a block the position does not apply yet.
			if (end === '\n\n') found.push({ cursor: position })
			yield* found.splice(0)
		}
	} finally {
		silence.abort()
	}
}
