/** POST …/runs with Accept: text/event-stream, and conversations that the caller names. */
import t from 'tap'
import { addToken } from '../support/add.ts'
import { send, startGateway } from '../support/gateway.ts'
import { openStream } from '../support/sse.ts'
import type { TestStream } from '../support/sse.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())
const RUNS = '/v1/agents/ada/runs'
await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })

const startStream = (
	body: object,
	options: { headers?: Record<string, string>; token?: string } = {},
): Promise<TestStream> => openStream(gateway.url, { path: RUNS, body, ...options })
const typesOf = ({ events }: TestStream): string[] => events.map(({ event_type }) => event_type)
const textOf = ({ events }: TestStream): string =>
	events
		.filter(({ event_type }) => event_type === 'model.stream')
		.map(({ payload }) => payload.content)
		.join('')

void t.test('the response streams all events of the run, including model.stream, to its end', async (t) => {
	const stream = await startStream({ prompt: 'Tell me something.', conversation: 'telling' })
	t.equal(await stream.closed, 'end')
	const run_id = stream.headers['x-svc-run-id']
	t.match(stream.headers, { 'content-type': 'text/event-stream', location: `/v1/events/stream?run_id=${run_id}` })
	t.ok(stream.events.length > 3 && stream.events.every((event) => event.run_id === run_id))
	t.match([typesOf(stream)[0], typesOf(stream).at(-1)], ['run.started', 'run.completed'])
	t.equal(stream.retry, 3000)
	t.notOk(stream.ids.includes(''))
	const answer = stream.events.find(({ event_type }) => event_type === 'message.assistant')?.payload.content
	t.equal(textOf(stream), answer, 'no part is missing')
	const order = stream.events.map(({ sequence }) => sequence)
	t.equal(order[0], 1)
	t.strictSame(
		order,
		[...new Set(order)].toSorted((a, b) => a - b),
	)
})

void t.test('an id follows only a complete event, wherever the stream is interrupted', async (t) => {
	const { body } = await send<string>(gateway.url + RUNS, 'POST', {
		body: { prompt: 'Tell me something.', conversation: 'breaking off' },
		headers: { accept: 'text/event-stream' },
	})
	const lines = body.split('\n')
	const isEvent = (line: string): boolean => line.startsWith('data: ')
	t.ok(lines.filter(isEvent).length > 3)
	for (const [at, line] of lines.entries()) if (line.startsWith('id: ')) t.ok(isEvent(lines[at - 1] ?? ''), line)
})

void t.test('a client that disconnected gets the missed events from the event stream', async (t) => {
	const stream = await startStream({ prompt: '/tool ask {"question": "Which one?"}', conversation: 'leaving' })
	const asked = await stream.waitFor('question.asked')
	const position = stream.ids[stream.events.indexOf(asked)] ?? ''
	stream.close()
	const question = String(asked.payload.question_id)
	await gateway.request('POST', `/v1/agents/ada/ask-responses/${question}`, { body: { answer: 'this one' } })
	const rest = await openStream(gateway.url, { path: String(stream.headers.location), lastEventId: position })
	await rest.waitFor('run.completed')
	t.equal(typesOf(rest).includes('question.asked'), false)
	t.ok(typesOf(rest).includes('question.answered'))
	rest.close()
})

void t.test('a repeated request resumes after Last-Event-ID, which requires an idempotency key', async (t) => {
	const headers = { 'idempotency-key': 'continued' }
	const body = { prompt: 'Once, continued.', conversation: 'continued' }
	const first = await startStream(body, { headers })
	await first.closed
	const again = await startStream(body, { headers: { ...headers, 'last-event-id': first.ids[0] ?? '' } })
	t.equal(await again.closed, 'end')
	const stored = ({ events }: TestStream): unknown[] =>
		events.filter(({ event_type }) => event_type !== 'model.stream').map(({ event_id }) => event_id)
	t.strictSame(stored(again), stored(first).slice(1))
	t.equal(again.headers['x-svc-run-id'], first.headers['x-svc-run-id'])
	const second = await gateway.request('POST', RUNS, {
		body,
		headers: { accept: 'text/event-stream', 'last-event-id': first.ids[0] ?? '' },
	})
	t.match(second, { status: 400, body: { code: 'invalid_request', message: /Idempotency-Key/ } })
})

void t.test('a repeated stream ends, whichever position it names', async (t) => {
	const headers = { 'idempotency-key': 'forged' }
	const body = { prompt: 'Once, forged.', conversation: 'forged' }
	const first = await startStream(body, { headers })
	await first.closed
	const head = first.ids.at(-1) ?? ''
	for (const after of [head, '999999999999', '-1', '0', 'forged', '1e9', '~'.repeat(200)]) {
		const again = await startStream(body, { headers: { ...headers, 'last-event-id': after } })
		t.equal(await again.closed, 'end', after)
		t.equal(again.headers['x-svc-run-id'], first.headers['x-svc-run-id'])
		const types = typesOf(first).filter((type) => type !== 'model.stream')
		t.strictSame(typesOf(again), after === head ? [] : types, after)
	}
	await t.rejects(startStream(body, { headers: { ...headers, 'last-event-id': '1'.repeat(201) } }), { message: /400/ })
})

void t.test('the stream of a repeated request contains the first run from its start', async (t) => {
	const headers = { 'idempotency-key': 'twice' }
	const first = await startStream({ prompt: 'Once.', conversation: 'repeated' }, { headers })
	await first.closed
	const again = await startStream({ prompt: 'Once.', conversation: 'repeated' }, { headers })
	t.equal(await again.closed, 'end')
	t.equal(again.headers['x-svc-run-id'], first.headers['x-svc-run-id'])
	t.strictSame(
		typesOf(again),
		typesOf(first).filter((type) => type !== 'model.stream'),
	)
	const other = await gateway.request('POST', RUNS, { body: { prompt: 'Once.', conversation: 'another' }, headers })
	t.match([other.status, other.body.code], [409, 'idempotency_mismatch'])
})

void t.test('concurrent streams each contain their own complete run', async (t) => {
	const all = await Promise.all(
		Array.from({ length: 20 }, (_, n) => startStream({ prompt: `Say number ${n}.`, conversation: `many-${n}` })),
	)
	for (const stream of all) {
		t.equal(await stream.closed, 'end')
		t.equal(new Set(stream.events.map(({ run_id }) => run_id)).size, 1)
		t.match([typesOf(stream)[0], typesOf(stream).at(-1)], ['run.started', 'run.completed'])
	}
})

void t.test('a caller without events:read gets no stream, and starts no run', async (t) => {
	const { token } = await addToken(gateway, ['runs:write', 'agents:read'])
	const before = (await gateway.request('GET', RUNS)).body.length
	const refused = startStream({ prompt: 'x' }, { token })
	await t.rejects(refused, { message: /403.*needs the scope events:read, too/ })
	t.equal((await gateway.request('GET', RUNS)).body.length, before)
	await t.rejects(startStream({ prompt: '' }), { message: /400/ })
	const both = await gateway.request('POST', RUNS, {
		token,
		body: { prompt: 'x', conversation: 'both' },
		headers: { accept: 'application/json, text/event-stream' },
	})
	t.match(both.body, { status: 'started' })
})

void t.test('an unanswered question blocks only its own conversation', async (t) => {
	const asking = await startStream({ prompt: '/tool ask {"question": "Go on?"}', conversation: 'asks' })
	const { run_id, payload } = await asking.waitFor('question.asked')
	const queued = await startStream({ prompt: 'Behind it.', conversation: 'api:asks' })
	await queued.waitFor('run.queued')
	const parallel = await startStream({ prompt: 'Beside it.', conversation: 'Grüße & mehr' })
	t.equal(await parallel.closed, 'end')
	const { body: waiting } = await gateway.request('GET', `/v1/runs/${queued.headers['x-svc-run-id']}`)
	t.match(waiting, { status: 'queued', conversation: 'api:asks' })
	await gateway.request('POST', `/v1/agents/ada/ask-responses/${String(payload.question_id)}`, {
		body: { answer: 'y' },
	})
	t.equal(await queued.closed, 'end')
	t.equal(await asking.closed, 'end')
	const history = await gateway.request('GET', '/v1/agents/ada/history?conversation=api:asks')
	t.strictSame(
		history.body
			.filter(({ role }: { role: string }) => role === 'user')
			.map(({ content }: { content: string }) => content),
		['/tool ask {"question": "Go on?"}', 'Behind it.'],
	)
	t.equal((await gateway.request('GET', `/v1/runs/${run_id}`)).body.status, 'completed')
})

void t.test('the name of a conversation has 1 to 200 printable characters', async (t) => {
	for (const conversation of ['', 'x'.repeat(201), 'a\nb', 7]) {
		const { status, body } = await gateway.request('POST', RUNS, { body: { prompt: 'x', conversation } })
		t.match([status, body.errors?.[0]?.path], [400, 'conversation'], String(conversation))
	}
	const { body } = await gateway.request('POST', RUNS, { body: { prompt: 'x', conversation: 'ä'.repeat(200) } })
	t.match((await gateway.request('GET', `/v1/runs/${body.run_id}`)).body.conversation, /^api:[0-9a-f]{64}$/)
})
