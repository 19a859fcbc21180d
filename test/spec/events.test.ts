/** The event stream and the audit log (spec "Runs and events", "Event envelope", "Events"), over HTTP. */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { newId } from '../../core/util/ids.ts'
import { openRun } from '../../plugins/runs/run-log.ts'
import type { RunLog } from '../../plugins/runs/run-log.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { addToken } from '../support/add.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { assertError } from '../support/error-response.ts'
import { openStream } from '../support/sse.ts'
import type { TestStream } from '../support/sse.ts'
import { startTimerClock } from '../support/timer-clock.ts'
import { WAIT_LIMIT_MS, eventually } from '../support/wait.ts'

/** A third-party plugin whose route returns the number of open streams. */
const probe = `
export default {
	name: 'probe',
	needs: ['auth', 'events'],
	http(server, ctx) {
		server.route({ method: 'GET', path: '/probe/streams', handler: () => ({ open: ctx.use('events').streams() }) })
	},
}
`
const config = 'plugins:\n  probe: true\n'
const files = { 'plugins/probe/index.js': probe }

interface TestEvent {
	type: string
	/** Delivered, but not stored. */
	live?: boolean
	/** All other fields form the payload. */
	[field: string]: unknown
}

/** Emits an event outside of runs, as built-in plugins do. */
async function emit({ running }: TestGateway, { type, ...payload }: TestEvent, agent?: string): Promise<void> {
	await running.gateway.events.emit({ event_type: type, payload }, agent)
}

const logs = new Map<string, Promise<RunLog>>()

async function emitInRun({ running }: TestGateway, run_id: string, agent: string, events: TestEvent[]): Promise<void> {
	if (!logs.has(run_id)) logs.set(run_id, openRun(running.gateway.events, { run_id, agent_id: agent }, true))
	const log = (await logs.get(run_id)) as RunLog
	await Promise.all(
		events.map(async ({ type, live, ...payload }) => {
			const event = { event_type: type, payload }
			await (live ? log.live(event) : log.append([event]))
		}),
	)
}

/** All events that match a filter, oldest first, read from the audit page by page. */
async function readAudit(gateway: TestGateway, query: Record<string, string> = {}): Promise<EventEnvelope[]> {
	const events: EventEnvelope[] = []
	for (let cursor: string | null = ''; cursor !== null;) {
		const search = new URLSearchParams({ limit: '500', ...query, ...(cursor && { cursor }) })
		const { status, body } = await gateway.request('GET', `/v1/audit?${search}`)
		if (status !== 200) throw new Error(`no audit: ${status} ${JSON.stringify(body)}`)
		events.push(...body.events)
		cursor = body.next_cursor
	}
	return events.toReversed()
}

/** Opens a stream, and returns it with the position of the log at that time. */
async function openAt({ url, running }: TestGateway): Promise<{ stream: TestStream; start: string }> {
	const stream = await openStream(url)
	return { stream, start: running.gateway.events.head() }
}

const typesOf = (events: EventEnvelope[]): string[] => events.map((event) => event.event_type)
const idsOf = (events: EventEnvelope[]): string[] => events.map((event) => event.event_id)

void t.test('the event stream', async (t) => {
	const gateway = await startGateway({ madeUpEvents: true, config, files })
	t.teardown(() => gateway.stop())
	const { url } = gateway

	await t.test('answers at once, before any event, with headers that keep proxies from buffering', async (t) => {
		const { stream, start } = await openAt(gateway)
		t.match(start, /^\S+$/)
		await stream.until(() => stream.retry !== undefined, 'the reconnection delay')
		t.equal(stream.retry, 3000)
		t.equal(stream.headers['content-type'], 'text/event-stream')
		t.match(stream.headers['cache-control'], /no-cache.*no-transform/)
		t.equal(stream.headers['x-accel-buffering'], 'no')
		t.notOk(stream.headers['content-encoding'])
		t.strictSame(stream.events, [])
		stream.close()
	})

	await t.test('has the same security headers as other responses', async (t) => {
		const stream = await openStream(url, { headers: { 'accept-encoding': 'gzip' } })
		const { headers } = await gateway.request('GET', '/v1/audit')
		const security = [...headers].filter(([name]) => /^x-|policy|security/.test(name))
		t.ok(security.length >= 4)
		for (const [name, value] of security) if (name !== 'x-request-id') t.equal(stream.headers[name], value, name)
		t.ok(stream.headers['x-request-id'], 'and a request id')
		stream.close()
	})

	await t.test('sends each event as a complete envelope, with the position after it as its id', async (t) => {
		const stream = await openStream(url)
		const content = 'two\nlines, \u2028 and ünïcode 🎈'
		await emitInRun(gateway, 'shape', 'ada', [{ type: 'message.assistant', content }])
		const event = await stream.waitFor('message.assistant')
		t.strictSame(Object.keys(event).toSorted(), [
			'agent_id',
			'event_id',
			'event_type',
			'payload',
			'run_id',
			'sequence',
			'timestamp',
		])
		t.match(event, {
			event_id: /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
			timestamp: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
			agent_id: 'ada',
			run_id: 'shape',
			sequence: 1,
		})
		t.strictSame(event.payload, { content })
		t.equal(stream.lastEventId, stream.ids[0])
		stream.close()
	})

	await t.test('applies the same filter live, to replayed events and in the audit', async (t) => {
		const all = ['run.started', 'message.user', 'message.assistant', 'agent.updated', 'message.assistant', 'message']
		const ofRun = all.slice(0, 3)
		const filters: [query: Record<string, string>, expected: string[]][] = [
			[{}, all],
			[{ event_type: '*' }, all],
			[{ event_type: 'message.user,*' }, all],
			[{ agent_id: 'ann' }, [...ofRun, 'agent.updated']],
			[{ agent_id: 'ben' }, ['message.assistant']],
			[{ run_id: 'of-ann' }, ofRun],
			[{ run_id: 'of-ann', agent_id: 'ann', event_type: 'message.*' }, ['message.user', 'message.assistant']],
			[{ agent_id: 'ann', event_type: 'message.assistant' }, ['message.assistant']],
			[{ event_type: 'message.assistant' }, ['message.assistant', 'message.assistant']],
			[{ event_type: 'message.*' }, ['message.user', 'message.assistant', 'message.assistant']],
			[{ event_type: 'run.started,agent.*' }, ['run.started', 'agent.updated']],
			[{ event_type: 'message' }, ['message']],
			// These match nothing before the last events below.
			[{ agent_id: 'new' }, []],
			[{ run_id: 'of-new' }, []],
			[{ event_type: 'own.type' }, []],
		]
		const follow = (more: { lastEventId?: string }) =>
			Promise.all(filters.map(([query]) => openStream(url, { query, ...more })))
		const { stream: unfiltered, start } = await openAt(gateway)
		unfiltered.close()
		const live = await follow({})

		await emitInRun(gateway, 'of-ann', 'ann', [{ type: 'run.started' }, { type: 'message.user' }])
		await emitInRun(gateway, 'of-ann', 'ann', [{ type: 'message.assistant' }])
		await emit(gateway, { type: 'agent.updated' }, 'ann')
		await emitInRun(gateway, 'of-ben', 'ben', [{ type: 'message.assistant' }])
		await emit(gateway, { type: 'message' })
		// A last event for every filter: an event that has not arrived before it will not arrive.
		const last = true
		await emitInRun(gateway, 'of-ann', 'ann', [
			{ type: 'message.assistant', last },
			{ type: 'run.started', last },
		])
		await emitInRun(gateway, 'of-ben', 'ben', [{ type: 'message.assistant', last }])
		await emitInRun(gateway, 'of-new', 'new', [{ type: 'own.type', last }])
		await emit(gateway, { type: 'message', last })

		const replayed = await follow({ lastEventId: start })
		for (const [index, [query, expected]] of filters.entries()) {
			const name = new URLSearchParams(query).toString() || 'no filter'
			const audit = await readAudit(gateway, query)
			for (const stream of [live[index], replayed[index]] as TestStream[]) {
				await stream.waitFor((event) => event.payload.last === true)
				const end = stream.events.findIndex((event) => event.payload.last === true)
				t.strictSame(typesOf(stream.events.slice(0, end)), expected, name)
				const shown = audit.findIndex((event) => event.event_id === stream.events[0]?.event_id)
				t.strictSame(idsOf(audit.slice(shown, shown + end + 1)), idsOf(stream.events.slice(0, end + 1)), name)
				stream.close()
			}
		}
	})

	await t.test('sends model.stream live only, without replay and audit', async (t) => {
		const { stream, start } = await openAt(gateway)
		await emitInRun(gateway, 'pieces', 'ada', [
			{ type: 'model.request' },
			{ type: 'model.stream', live: true, content: 'Hel' },
			{ type: 'model.stream', live: true, content: 'lo' },
			{ type: 'model.response' },
		])
		await stream.waitFor('model.response')
		t.strictSame(typesOf(stream.events), ['model.request', 'model.stream', 'model.stream', 'model.response'])
		t.strictSame(
			stream.events.map((event) => event.sequence),
			[1, 2, 3, 4],
		)
		const replay = await openStream(url, { lastEventId: start, query: { run_id: 'pieces' } })
		await replay.waitFor('model.response')
		t.strictSame(typesOf(replay.events), ['model.request', 'model.response'])
		t.strictSame(typesOf(await readAudit(gateway, { run_id: 'pieces' })), ['model.request', 'model.response'])
		for (const open of [stream, replay]) open.close()
	})

	await t.test('resumes after the position in the header or in the query, and continues live', async (t) => {
		const { stream, start } = await openAt(gateway)
		const events = Array.from({ length: 10 }, (_, n) => ({ type: 'message.user', n }))
		await emitInRun(gateway, 'resume', 'ada', events)
		await stream.waitFor('message.user', 10)
		const [, , third, , fifth] = stream.ids as [string, string, string, string, string]
		const cases: [after: number, options: Parameters<typeof openStream>[1]][] = [
			[3, { lastEventId: third }],
			[5, { query: { last_event_id: fifth } }],
			[5, { lastEventId: fifth, query: { last_event_id: third } }],
			[3, { lastEventId: '', query: { last_event_id: third } }],
			[0, { lastEventId: start }],
			[10, { lastEventId: stream.lastEventId }],
			[3, { lastEventId: stream.events[2]?.event_id ?? '' }],
			[5, { query: { last_event_id: stream.events[4]?.event_id.toUpperCase() ?? '' } }],
		]
		const resumed = await Promise.all(cases.map(async ([after, options]) => [after, await openStream(url, options)]))
		await emitInRun(gateway, 'resume', 'ada', [{ type: 'message.user', n: 10 }])
		for (const [after, rest] of resumed as [number, TestStream][]) {
			await rest.waitFor((event) => event.payload.n === 10)
			t.strictSame(
				rest.events.map((event) => event.payload.n),
				Array.from({ length: 11 - after }, (_, n) => n + after),
			)
			rest.close()
		}
		stream.close()
	})

	await t.test('starts at the current position, with a comment, if the given one is unknown', async (t) => {
		await emitInRun(gateway, 'unknown', 'ada', [{ type: 'run.started' }])
		for (const position of ['yesterday', '-1', '999999999999', newId(), '018f0000-0000-7000-8000-000000000000']) {
			const inHeader = await openStream(url, { lastEventId: position })
			const inQuery = await openStream(url, { query: { last_event_id: position } })
			for (const stream of [inHeader, inQuery]) {
				await stream.until(() => stream.comments.length > 0, 'a comment')
				// On a busy machine a keep-alive comment may already follow it.
				t.equal(stream.comments[0], 'unknown position', position)
				await emit(gateway, { type: 'message', of: position })
				t.equal((await stream.waitFor('message')).payload.of, position)
				t.equal(stream.events[0]?.event_type, 'message')
				stream.close()
			}
		}
	})

	await t.test('delivers the log in order, without gaps or repeats, across reconnections', async (t) => {
		const { stream, start } = await openAt(gateway)
		const random = randomFrom(20_261)
		const runs = Array.from({ length: 6 }, (_, n) => ({ run_id: `busy-${n}`, agent: `agent-${n % 2}` }))
		const filters: Record<string, string>[] = [
			{},
			{},
			{},
			{ agent_id: 'agent-1' },
			{ run_id: 'busy-2' },
			{ event_type: 'message.*' },
			{ agent_id: 'agent-0', event_type: 'run.started,message.assistant' },
		]
		const rounds = 50
		const wanted = 3 * filters.length + 1
		const write = async ({ run_id, agent }: { run_id: string; agent: string }): Promise<void> => {
			await emitInRun(gateway, run_id, agent, [{ type: 'run.started' }])
			for (let round = 0; round < rounds; round++) {
				// Connections that open slowly would read everything at once. There are enough events in between for the next ones.
				await eventually(() => connections >= (wanted * round) / rounds)
				await emitInRun(gateway, run_id, agent, [
					{ type: 'message.user' },
					{ type: 'model.request' },
					{ type: 'model.stream', live: true },
					{ type: 'model.response' },
					{ type: 'message.assistant', text: 'x'.repeat(Math.floor(random() * 2_000)) },
				])
			}
		}
		let written = false
		let connections = 0
		const writing = Promise.all(runs.map(write)).then(() => (written = true))

		const read = async (query: Record<string, string>): Promise<void> => {
			const seen: string[] = []
			let at = start
			let expected: string[] | undefined
			while (!expected || seen.length < expected.length) {
				const connection = await openStream(url, { query, lastEventId: at })
				connections++
				const stored = (): EventEnvelope[] => connection.events.filter((event) => event.event_type !== 'model.stream')
				if (written) {
					expected ??= idsOf((await readAudit(gateway, query)).filter((event) => event.run_id?.startsWith('busy-')))
					const rest = expected.length - seen.length
					await connection.until(() => stored().length >= rest, `the last ${rest} events`)
				} else {
					const some = 1 + Math.floor(random() * 60)
					await Promise.race([connection.until(() => stored().length >= some, `${some} events`), writing])
				}
				connection.close()
				if (!risesInEachRun(connection.events)) t.fail('a sequence did not rise within one connection')
				seen.push(...idsOf(stored()))
				at = connection.lastEventId
			}
			t.strictSame(seen, expected)
		}
		await Promise.all([writing, ...filters.map(read)])
		t.ok(connections >= wanted, `${connections} connections`)

		await stream.until(() => stream.events.length >= 6 * (1 + rounds * 5), 'all events on the first connection')
		t.ok(risesInEachRun(stream.events))
		t.equal(new Set(idsOf(stream.events)).size, stream.events.length)
		stream.close()
	})

	await t.test('refuses invalid parameters, and names them', async (t) => {
		const invalid: [query: string, path: string, message: RegExp][] = [
			['agent=ada', 'agent', /agent is not allowed/],
			['limit=5', 'limit', /limit is not allowed/],
			['agent_id=', 'agent_id', /empty/],
			['agent_id=no%20spaces', 'agent_id', /1 to 64/],
			[`agent_id=${'a'.repeat(65)}`, 'agent_id', /1 to 64/],
			['run_id=a%00b', 'run_id', /1 to 64/],
			['event_type=', 'event_type', /empty/],
			['event_type=message.', 'event_type', /family such as message\.\*/],
			['event_type=a,,b', 'event_type', /commas/],
			['event_type=mess*', 'event_type', /family/],
			[`event_type=${'a,'.repeat(64)}a`, 'event_type', /at most 64/],
			['event_type=a&event_type=b', 'event_type', /must be a string/],
			['last_event_id=', 'last_event_id', /empty/],
			[`last_event_id=${'9'.repeat(200)}`, 'last_event_id', /128/],
		]
		for (const [query, path, message] of invalid) {
			const reply = await gateway.request('GET', `/v1/events/stream?${query}`)
			assertError(t, reply, { status: 400, code: 'invalid_request', path, message }, query)
		}
	})

	await t.test('HEAD answers with its type and opens no stream', async (t) => {
		await noStreams(gateway)
		const { status, headers } = await gateway.request('HEAD', '/v1/events/stream')
		t.equal(status, 200)
		t.match(headers.get('content-type'), /^text\/event-stream/)
		t.equal((await gateway.request('GET', '/probe/streams')).body.open, 0)
	})

	await t.test('is released when its client disconnects', async (t) => {
		const streams = await Promise.all([1, 2, 3].map(() => openStream(url)))
		t.equal((await gateway.request('GET', '/probe/streams')).body.open, 3)
		for (const stream of streams) stream.close()
		await noStreams(gateway)
		t.pass('no stream is open')
	})

	await t.test('is chunked in HTTP/1.1 and not in HTTP/1.0, and each block has data', async (t) => {
		const { token } = await addToken(gateway, ['events:read'])
		const head = `GET /v1/events/stream HTTP/1.0\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`
		const old = await sendRaw(url, head)
		const chunked = await sendRaw(url, 'GET /v1/events/stream HTTP/1.1\r\nhost: localhost\r\n\r\n')
		for (const socket of [old, chunked]) await socket.until(/: connected\nretry: 3000\n/)
		await emit(gateway, { type: 'message.user', first: 1 })
		await emit(gateway, { type: 'message.user', second: 2 })
		const plain = await old.until(/"second":2\}\}\nid: \d+\n\n/)
		t.notMatch(plain, /transfer-encoding/i)
		t.match(plain, /\r\n\r\n: connected\nretry: 3000\ndata: \{.*"first":1\}\}\nid: \d+\n\ndata: [^\n]*\nid: \d+\n\n$/)
		const inChunks = await chunked.until(/"second":2\}\}\nid: \d+\n\n\r\n/)
		t.match(inChunks, /\r\n\r\n[0-9a-f]+\r\n: connected\nretry: 3000\n\r\n[0-9a-f]+\r\ndata: /)
		for (const socket of [old, chunked]) socket.close()
	})

	await t.test('survives the reload of another plugin', async (t) => {
		const stream = await openStream(url)
		const file = join(gateway.home, 'plugins/probe/index.js')
		writeFileSync(file, `${readFileSync(file, 'utf8')}\n// changed\n`)
		await stream.waitFor((event) => event.event_type === 'plugin.reloaded' && event.payload.plugin === 'probe')
		await emit(gateway, { type: 'message.user', after: 'reload' })
		t.equal((await stream.waitFor('message.user')).payload.after, 'reload')
		stream.close()
	})

	await t.test('ends cleanly when its own settings change, and a client that reconnects misses nothing', async (t) => {
		const { stream } = await openAt(gateway)
		await emit(gateway, { type: 'message.user' })
		await stream.waitFor('message.user')
		writeFileSync(join(gateway.home, 'config/gateway.yaml'), `events:\n  retention_days: 31\n${config}`)
		t.equal(await stream.closed, 'end')
		const again = await openStream(url, { lastEventId: stream.lastEventId })
		await again.waitFor('config.reloaded')
		const both = [...stream.events, ...again.events]
		const log = idsOf(await readAudit(gateway))
		t.strictSame(
			idsOf(both),
			log.slice(log.indexOf(both[0]?.event_id ?? ''), log.indexOf(both.at(-1)?.event_id ?? '') + 1),
		)
		again.close()
	})

	await t.test('ends cleanly when the gateway stops', async (t) => {
		const streams = await Promise.all([{}, { run_id: 'none' }].map((query) => openStream(url, { query })))
		const raw = await sendRaw(url, 'GET /v1/events/stream HTTP/1.1\r\nhost: localhost\r\n\r\n')
		await raw.until(/^HTTP\/1\.1 200 /)
		await gateway.stop()
		t.strictSame(await Promise.all(streams.map((stream) => stream.closed)), ['end', 'end'])
		t.strictSame(typesOf(streams[0]?.events ?? []), ['gateway.stopping'])
		t.match(await raw.until(/\r\n0\r\n\r\n$/), /restarted/)
	})
})

void t.test('access to events', async (t) => {
	const gateway = await startGateway({ madeUpEvents: true, config, files, env: { SVC_LOOPBACK: '0' } })
	t.teardown(() => gateway.stop())
	const { url } = gateway
	const admin = await addToken(gateway, ['*'])
	const by = admin.token
	const reader = await addToken(gateway, ['events:read'], { by })
	const other = await addToken(gateway, ['agents:read', 'runs:write'], { by })

	for (const path of ['/v1/events/stream', '/v1/audit']) {
		await t.test(`${path} requires the scope events:read`, async (t) => {
			const missing = await gateway.request('GET', path)
			assertError(t, missing, { status: 401, code: 'unauthorized' })
			t.match(missing.headers.get('www-authenticate'), /^Bearer/)
			const wrong = await gateway.request('GET', path, { token: other.token })
			assertError(t, wrong, { status: 403, code: 'forbidden', message: /events:read/ })
			for (const { token } of [reader, admin]) {
				const stream = await openStream(url, { path, token })
				t.equal(stream.status, 200)
				stream.close()
			}
		})
	}

	await t.test('the streams of a revoked token end within a second, and those of other tokens continue', async (t) => {
		const revoked = await addToken(gateway, ['events:read'], { by })
		const ending = await Promise.all([1, 2, 3].map(() => openStream(url, { token: revoked.token })))
		const staying = await openStream(url, { token: reader.token })
		await gateway.request('DELETE', `/v1/auth/tokens/${revoked.id}`, { token: by })
		using time = startTimerClock()
		t.strictSame(await Promise.all(ending.map((stream) => stream.closed)), ['end', 'end', 'end'])
		t.ok(time.passed() < 1_000, `${time.passed()} ms after it was revoked`)
		t.match(ending[0]?.comments.at(-1), /no longer valid/)
		const again = await gateway.request('GET', '/v1/events/stream', { token: revoked.token })
		assertError(t, again, { status: 401, code: 'unauthorized' })
		await addToken(gateway, ['events:read'], { by })
		await staying.waitFor('token.created')
		staying.close()
	})

	await t.test('the stream of an expired token ends within a second', async (t) => {
		const expires = Date.now() + 3_600_000
		const { token } = await addToken(gateway, ['events:read'], { by, ttl: new Date(expires).toISOString() })
		const stream = await openStream(url, { token })
		let isOpen = true
		void stream.closed.then(() => (isOpen = false))
		const revoked = await addToken(gateway, ['events:read'], { by })
		const later = await openStream(url, { token: revoked.token })
		const real = Date.now
		t.teardown(() => (Date.now = real))
		Date.now = () => expires - 1
		await gateway.request('DELETE', `/v1/auth/tokens/${revoked.id}`, { token: by })
		// Streams are checked in the order in which they were opened.
		t.equal(await later.closed, 'end')
		t.ok(isOpen, 'not before the expiry')
		Date.now = () => expires
		using time = startTimerClock()
		t.equal(await stream.closed, 'end')
		t.ok(time.passed() < 1_000, `${time.passed()} ms after it expired`)
	})
})

void t.test('the audit log', async (t) => {
	const gateway = await startGateway({ madeUpEvents: true, config, files })
	t.teardown(() => gateway.stop())
	const page = async (query: string): Promise<{ events: EventEnvelope[]; next_cursor: string | null }> => {
		const { status, body } = await gateway.request('GET', `/v1/audit?${query}`)
		if (status !== 200) throw new Error(`no audit: ${status} ${JSON.stringify(body)}`)
		return body
	}
	for (let batch = 0; batch < 6; batch++) {
		const events = Array.from({ length: 20 }, (_, n) => ({ type: 'message.user', n: batch * 20 + n }))
		await emitInRun(gateway, 'counted', 'ada', events)
	}

	await t.test('returns the newest 50 events by default, newest first', async (t) => {
		const { status, body } = await gateway.request('GET', '/v1/audit')
		t.equal(status, 200)
		t.strictSame(Object.keys(body).toSorted(), ['events', 'next_cursor'])
		t.equal(body.events.length, 50)
		t.equal(typeof body.next_cursor, 'string')
		t.strictSame(
			body.events.map((event: EventEnvelope) => event.payload.n),
			Array.from({ length: 50 }, (_, n) => 119 - n),
		)
	})

	await t.test('returns each event exactly once, page by page, while more are written', async (t) => {
		const numbers: unknown[] = []
		let pages = 0
		for (let cursor: string | null = ''; cursor !== null; pages++) {
			const { events, next_cursor } = await page(`run_id=counted&limit=7${cursor && `&cursor=${cursor}`}`)
			t.ok(events.length <= 7)
			numbers.push(...events.map((event) => event.payload.n))
			cursor = next_cursor
			await emitInRun(gateway, 'counted', 'ada', [{ type: 'message.user', n: 1_000 + pages }])
		}
		t.ok(pages >= 120 / 7)
		t.strictSame(
			numbers,
			Array.from({ length: 120 }, (_, n) => 119 - n),
		)
	})

	await t.test('returns events at or after since, and before until', async (t) => {
		const all = await readAudit(gateway, { run_id: 'counted' })
		const times = [...new Set(all.map((event) => event.timestamp))]
		t.ok(times.length >= 3)
		const [from, to] = [times[1], times.at(-1)] as [string, string]
		const expected = all.filter(({ timestamp }) => timestamp >= from && timestamp < to)
		t.ok(expected.length > 0 && expected.length < all.length)
		const found = await readAudit(gateway, { run_id: 'counted', since: from, until: to })
		t.strictSame(idsOf(found), idsOf(expected))
		const shifted = new Date(Date.parse(from) + 3_600_000).toISOString().replace('Z', '+01:00')
		t.strictSame(idsOf(await readAudit(gateway, { run_id: 'counted', since: shifted, until: to })), idsOf(expected))
		t.strictSame(await readAudit(gateway, { until: '2000-01-01T00:00:00Z' }), [])
	})

	await t.test('returns no events and no cursor if nothing matches', async (t) => {
		t.strictSame(await page('agent_id=nobody'), { events: [], next_cursor: null })
		t.strictSame(await page('run_id=none&event_type=run.*'), { events: [], next_cursor: null })
	})

	await t.test('refuses invalid parameters, and names them', async (t) => {
		const invalid: [query: string, path: string, message: RegExp][] = [
			['last_event_id=1', 'last_event_id', /not allowed/],
			['limit=0', 'limit', /1/],
			['limit=501', 'limit', /500/],
			['limit=1.5', 'limit', /integer/],
			['limit=many', 'limit', /number/],
			['cursor=newest', 'cursor', /"newest" is not a position.*leave it out/],
			['cursor=', 'cursor', /empty/],
			['since=yesterday', 'since', /iso/i],
			['until=2026-13-01', 'until', /iso/i],
			['since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z', 'until', /later than since/],
			['event_type=message.', 'event_type', /family/],
			['agent_id=a/b', 'agent_id', /1 to 64/],
		]
		for (const [query, path, message] of invalid) {
			const reply = await gateway.request('GET', `/v1/audit?${query}`)
			assertError(t, reply, { status: 400, code: 'invalid_request', path, message }, query)
		}
	})
})

/** Waits until the gateway has released all streams. */
async function noStreams(gateway: TestGateway): Promise<void> {
	await eventually(
		async () => (await gateway.request('GET', '/probe/streams')).body.open,
		(open) => open === 0,
	)
}

/** Sends text on a socket, and collects the response. `until` returns the response so far once it matches. */
async function sendRaw(url: string, text: string): Promise<{ until(pattern: RegExp): Promise<string>; close(): void }> {
	const socket = net.connect(Number(new URL(url).port), '127.0.0.1')
	await once(socket, 'connect')
	let received = ''
	socket.on('data', (data) => (received += data.toString()))
	socket.write(text)
	return {
		async until(pattern) {
			while (!pattern.test(received)) {
				if (socket.readableEnded) throw new Error(`the socket ended before ${String(pattern)}: ${received}`)
				await Promise.race([once(socket, 'data', { signal: AbortSignal.timeout(WAIT_LIMIT_MS) }), once(socket, 'end')])
			}
			return received
		},
		close: () => socket.destroy(),
	}
}

function risesInEachRun(events: EventEnvelope[]): boolean {
	const last = new Map<string, number>()
	for (const { run_id, sequence } of events) {
		if (run_id === null) continue
		if (sequence <= (last.get(run_id) ?? 0)) return false
		last.set(run_id, sequence)
	}
	return true
}

/** Random numbers in 0–1 that are the same in each run (mulberry32). */
function randomFrom(seed: number): () => number {
	let state = seed
	return () => {
		state = (state + 0x6d2b79f5) | 0
		let mixed = Math.imul(state ^ (state >>> 15), state | 1)
		mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
	}
}
