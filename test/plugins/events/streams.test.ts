/** The table of streams with a slow event log, such as one on other machines. */
import http from 'node:http'
import net from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { openRun } from '../../../plugins/runs/run-log.ts'
import { Fault } from '../../../core/errors.ts'
import { openEventBus } from '../../../core/events/event-bus.ts'
import type { EventBus } from '../../../core/events/event-bus.ts'
import { openLog } from '../../../core/log/log.ts'
import type { Context } from '../../../core/plugin.ts'
import { openRedactor } from '../../../core/redactor/redactor.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { openMemory } from '../../support/memory-engine.ts'
import type { EventSettings } from '../../../plugins/events/contract.ts'
import type { OpenRequestsOptions } from '../../../plugins/auth/contract.ts'
import { OpenRequestTable } from '../../../plugins/auth/open-requests.ts'
import { Streams } from '../../../plugins/events/streams.ts'
import { startTimerClock } from '../../support/timer-clock.ts'
import { openStream } from '../../support/sse.ts'

const log = openLog({ level: 'silent', format: 'json' })
const settings: EventSettings = { retention_days: 30, max_streams: 100, heartbeat_s: 15, stall_timeout_s: 30 }

interface Setup {
	bus: EventBus
	streams: Streams
	url: string
	/** Whether callers are still valid. */
	check: { answer: () => Promise<boolean> }
}

/** `read` wraps the reads of the log. */
async function setUp(t: Test, read: (read: EventBus['read']) => EventBus['read'] = (plain) => plain): Promise<Setup> {
	const bus = openEventBus(openMemory().log, log)
	const events: EventBus = { ...bus, read: read(bus.read) }
	const check = { answer: async () => true }
	const context = {
		config: settings,
		events,
		log,
		redactor: openRedactor(),
		signal: new AbortController().signal,
		use: () => ({
			openRequests: (options: OpenRequestsOptions) => new OpenRequestTable(options, () => check.answer()),
		}),
	} as unknown as Context<EventSettings>
	const streams = new Streams(context)
	const server = http.createServer((request, response) => {
		const after = (request.headers['last-event-id'] as string | undefined) ?? null
		const { searchParams } = new URL(request.url ?? '', 'http://localhost')
		const run_id = searchParams.get('run_id')
		const actor = { kind: 'local' as const }
		const credentials = { token_id: searchParams.get('token'), scope: ['events:read'], actor, local: true }
		streams
			.open({ response, credentials, filter: run_id === null ? {} : { run_id }, after })
			.catch((error: unknown) => {
				response.writeHead(error instanceof Fault ? error.status : 500).end(String(error))
			})
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(async () => {
		streams.close()
		await stop()
	})
	return { bus, streams, url, check }
}

void t.test('continues from a slow log to live events under constant writes, without gap or repetition', async (t) => {
	let call = 0
	const wait = async (): Promise<void> => {
		for (let turns = call++ % 4; turns > 0; turns--) await new Promise(setImmediate)
	}
	const { bus, url } = await setUp(t, (read) => async (...request) => {
		await wait()
		const page = await read(...request)
		await wait()
		return page
	})
	const writers = await Promise.all(['r0', 'r1', 'r2'].map((run_id) => openRun(bus, { run_id, agent_id: 'ada' }, true)))
	const payload = { text: 'x'.repeat(200) }
	const large = { text: 'x'.repeat(5_000) }
	// These are live all the time.
	const others = await Promise.all([openStream(url), openStream(url, { query: { run_id: 'r1' } })])
	let stop = false
	const writing = writers.map(async (writer) => {
		while (!stop) {
			writer.live({ event_type: 'model.stream', payload })
			await writer.append([
				{ event_type: 'message.user', payload },
				{ event_type: 'message.assistant', payload: large },
			])
			for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate)
		}
	})
	for (let round = 0; round < 12; round++) {
		const start = bus.head()
		for (let more = 0; more < 20; more++) await new Promise(setImmediate)
		const query = round % 3 === 0 ? { run_id: 'r1' } : {}
		const stream = await openStream(url, { lastEventId: start, query })
		// Pieces of an answer are live only: when they arrive, the stream has caught up.
		await stream.waitFor('model.stream', 20)
		stream.close()
		const kept = stream.events.filter((event) => event.event_type !== 'model.stream').map((event) => event.event_id)
		const { entries } = await bus.read(query, start, kept.length)
		t.strictSame(
			kept,
			entries.map(({ event }) => event.event_id),
		)
	}
	stop = true
	await Promise.all(writing)
	for (const stream of others) {
		t.equal(new Set(stream.events.map((event) => event.event_id)).size, stream.events.length)
		stream.close()
	}
})

void t.test('continues after a page of the log that contains nothing for it', async (t) => {
	const { bus, url } = await setUp(t, (read) => async (filter, after, limit, reverse) => {
		// Like an engine that reads ten events for one page, whatever the filter accepts.
		const { entries, next } = await read({}, after, Math.min(limit, 10), reverse)
		const found = entries.filter(({ event }) => filter.run_id === undefined || event.run_id === filter.run_id)
		return { entries: found, next }
	})
	const start = bus.head()
	for (let n = 0; n < 95; n++) await bus.emit({ event_type: 'message.user', payload: {} })
	const run = await openRun(bus, { run_id: 'r1', agent_id: 'ada' }, true)
	await run.append([{ event_type: 'run.started', payload: {} }])
	const stream = await openStream(url, { lastEventId: start, query: { run_id: 'r1' } })
	await stream.waitFor('run.started')
	await run.append([{ event_type: 'run.completed', payload: {} }])
	await stream.waitFor('run.completed')
	t.equal(stream.events.length, 2)
	stream.close()
})

void t.test('reads again if more events arrive during a read than it buffers', async (t) => {
	const burst = 3_000
	let calls = 0
	const { bus, url } = await setUp(t, (read) => async (...request) => {
		const page = await read(...request)
		if (++calls === 1) for (let n = 0; n < burst; n++) await bus.emit({ event_type: 'message.user', payload: { n } })
		return page
	})
	const stream = await openStream(url, { lastEventId: bus.head() })
	await stream.waitFor('message.user', burst)
	t.strictSame(
		stream.events.map((event) => event.payload.n),
		Array.from({ length: burst }, (_, n) => n),
	)
	stream.close()
})

void t.test('ends the streams of a caller that cannot be checked', async (t) => {
	const { check, url, streams } = await setUp(t)
	const stream = await openStream(url)
	t.equal(streams.size, 1)
	check.answer = async () => {
		throw new Error('the store is gone')
	}
	t.equal(await stream.closed, 'end')
	t.equal(streams.size, 0)
})

void t.test('checks each caller once, however many streams it has', async (t) => {
	const { check, url } = await setUp(t)
	let checks = 0
	let rounds = 0
	const counted = Promise.withResolvers<void>()
	check.answer = async () => {
		checks++
		if (checks % 2 === 0 && ++rounds === 2) counted.resolve()
		return true
	}
	const open = Array.from({ length: 20 }, (_, n) => openStream(url, { query: { token: n % 2 === 0 ? 'even' : 'odd' } }))
	const all = await Promise.all(open)
	checks = 0
	rounds = 0
	using time = startTimerClock()
	await counted.promise
	t.ok(time.passed() < 1_500, 'twice a second')
	t.equal(checks, 4)
	for (const stream of all) stream.close()
})

void t.test('ends a stream when the log cannot be read, and opens it again', async (t) => {
	let calls = 0
	const { bus, url } = await setUp(t, (read) => async (...request) => {
		if (++calls === 1) throw new Fault('store_damaged', 'broken')
		return read(...request)
	})
	await bus.emit({ event_type: 'message.user', payload: {} })
	const stream = await openStream(url, { lastEventId: '0' })
	t.equal(await stream.closed, 'end')
	const again = await openStream(url, { lastEventId: '0' })
	await again.waitFor('message.user')
	again.close()
})

void t.test('keeps nothing in memory for a client that reads nothing', async (t) => {
	const { bus, streams, url } = await setUp(t)
	const socket = net.connect(Number(new URL(url).port), '127.0.0.1')
	socket.pause()
	socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')
	while (streams.size === 0) await new Promise(setImmediate)
	const run = await openRun(bus, { run_id: 'r1', agent_id: 'ada' }, true)
	const before = process.memoryUsage().arrayBuffers
	const text = 'x'.repeat(64 * 1024)
	for (let n = 0; n < 1_500; n++) {
		run.live({ event_type: 'model.stream', payload: { text } })
		await new Promise(setImmediate)
	}
	const grown = process.memoryUsage().arrayBuffers - before
	t.ok(grown < 20 * 1024 * 1024, `${Math.round(grown / 1024 / 1024)} of 94 MiB`)
	t.equal(streams.size, 1, 'it is not disconnected yet')
	socket.destroy()
})
