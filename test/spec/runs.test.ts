/** Starting runs, their events, reading them, idempotency, history and reset, over HTTP. */
import t from 'tap'
import { addToken } from '../support/add.ts'
import { startGateway } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import { providersAt } from '../support/providers.ts'
import { assertError } from '../support/error-response.ts'
import { follow } from '../support/runs.ts'
import { withoutAdditions } from '../support/model-messages.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

void t.test('starting a run returns run_id, agent and the status started', async (t) => {
	const ada = await follow(t, gateway, 'start')
	const { status, body } = await ada.call('runs', { prompt: 'Hello.' })
	t.equal(status, 200)
	const { run_id, ...rest } = body
	t.match(run_id, UUID)
	t.strictSame(rest, { agent: 'start', status: 'started' })
	await ada.ended(run_id)
})

void t.test('a run emits events from run.started to run.completed', async (t) => {
	const ada = await follow(t, gateway, 'story')
	const run_id = await ada.complete('Hello.')
	t.strictSame(ada.typesOf(run_id), [
		'run.started',
		'message.user',
		'model.request',
		'model.response',
		'primitive.called',
		'memory.recalled',
		'primitive.result',
		'model.request',
		'model.response',
		'message.assistant',
		'run.completed',
	])
	const events = ada.eventsOf(run_id)
	t.match(events[0], { payload: { trigger: 'api' } })
	t.match(events[1], { payload: { content: 'Hello.' } })
	t.match(events[2], { payload: { provider: 'offline', step: 1 } })
	t.match(events[4], { payload: { primitive: 'memory.recall' } })
	t.match(events[9], { payload: { content: /Hello\./ } })
	t.match(events[10], { payload: { usage: { input_tokens: Number, output_tokens: Number }, finish_reason: 'stop' } })
	for (const event of events) {
		t.match(event, { agent_id: 'story', run_id, event_id: UUID, timestamp: ISO })
		t.strictSame(Object.keys(event).length, 7)
	}

	const all = ada.stream.events.filter((event) => event.run_id === run_id)
	t.equal(all[0]?.sequence, 1)
	t.ok(
		all.every((event, at) => at === 0 || event.sequence > (all[at - 1]?.sequence ?? 0)),
		'the sequence strictly increases, including model.stream',
	)
	const parts = all.filter((event) => event.event_type === 'model.stream').map((event) => event.payload.content)
	t.ok(parts.length > 0)
	t.equal(parts.join(''), events[9]?.payload.content, 'the parts form the answer')
	t.equal(new Set(all.map((event) => event.event_id)).size, all.length)
})

void t.test('the persona is emitted as message.system', async (t) => {
	const ada = await follow(t, gateway, 'persona', { persona: 'You are terse.' })
	const run_id = await ada.complete('Hello.')
	t.strictSame(ada.typesOf(run_id).slice(0, 3), ['run.started', 'message.system', 'message.user'])
	t.match(ada.eventsOf(run_id)[1], { payload: { content: 'You are terse.' } })
})

void t.test('the audit log has every event of a run except model.stream', async (t) => {
	const ada = await follow(t, gateway, 'audited')
	const run_id = await ada.complete('/tool memory.stm_read {}')
	const { body } = await gateway.request('GET', `/v1/audit?run_id=${run_id}`)
	t.strictSame(body.events.toReversed(), ada.eventsOf(run_id))
})

void t.test('a run can be read with its state, its result and its times', async (t) => {
	const ada = await follow(t, gateway, 'readable')
	const run_id = await ada.complete('Hello.')
	const { status, body } = await gateway.request('GET', `/v1/runs/${run_id}`)
	t.equal(status, 200)
	const { created_at, started_at, ended_at, conversation, answer, usage, request_id, ...rest } = body
	t.type(request_id, 'string', 'the request that started it')
	t.strictSame(rest, {
		run_id,
		agent: 'readable',
		status: 'completed',
		trigger: 'api',
		prompt: 'Hello.',
		finish_reason: 'stop',
		error: null,
		question: null,
		open_question: null,
		waits_for: null,
		parent_run_id: null,
	})
	for (const time of [created_at, started_at, ended_at]) t.match(time, ISO)
	t.ok(created_at <= started_at && started_at <= ended_at)
	t.type(conversation, 'string')
	t.equal(answer, ada.eventsOf(run_id).find((event) => event.event_type === 'message.assistant')?.payload.content)
	t.ok(usage.input_tokens > 0 && usage.output_tokens > 0)
	t.strictSame(Object.keys(usage).toSorted(), ['input_tokens', 'output_tokens'])
})

void t.test(
	'once run.completed has arrived, the run is read as completed and its answer is in the history',
	async (t) => {
		const ada = await follow(t, gateway, 'prompt-reader')
		for (let round = 1; round <= 20; round++) {
			const run_id = await ada.complete(`Round ${round}.`)
			const [run, list, history] = await Promise.all([
				ada.read(run_id),
				ada.call(`runs?limit=1&status=completed`),
				ada.call('history'),
			])
			t.equal(run.status, 'completed')
			t.equal(list.body[0]?.run_id, run_id)
			t.equal(history.body.length, 2 * round)
		}
	},
)

void t.test('runs are listed newest first, in pages, and by status', async (t) => {
	const ada = await follow(t, gateway, 'lister')
	const runs: string[] = []
	for (let n = 0; n < 5; n++) runs.unshift(await ada.complete(`Run ${n}.`))
	const asking = await ada.start('/tool ask {"question":"Why?"}')
	await ada.waitFor(asking, 'run.paused')
	runs.unshift(asking)
	const waiting = await ada.start('Behind it.')
	runs.unshift(waiting)

	const ids = async (query: string): Promise<string[]> =>
		(await ada.call(`runs${query}`)).body.map((run: { run_id: string }) => run.run_id)
	t.strictSame(await ids(''), runs)
	t.strictSame(await ids('?limit=2'), runs.slice(0, 2))
	t.strictSame(await ids(`?limit=2&before=${runs[1]}`), runs.slice(2, 4))
	t.strictSame(await ids(`?before=${runs.at(-1)}`), [])
	t.strictSame(await ids('?status=paused'), [asking])
	t.strictSame(await ids('?status=queued'), [waiting])
	t.strictSame(await ids('?status=completed&limit=1'), runs.slice(2, 3))
	t.strictSame(await ids('?status=failed'), [])
	const [first] = (await ada.call('runs?limit=1')).body
	t.strictSame(first, await ada.read(waiting), 'the list has the same record as GET')
	t.match(first, { status: 'queued', started_at: null, ended_at: null, answer: null })
})

void t.test('invalid queries of runs are refused', async (t) => {
	const ada = await follow(t, gateway, 'asked-badly')
	for (const [query, path] of [
		['limit=0', 'limit'],
		['limit=501', 'limit'],
		['limit=many', 'limit'],
		['limit=1.5', 'limit'],
		['status=done', 'status'],
		['colour=red', 'colour'],
		[`before=${'x'.repeat(65)}`, 'before'],
	] as const)
		assertError(t, await ada.call(`runs?${query}`), { status: 400, code: 'invalid_request', path }, query)
	const unknown = await gateway.request('GET', '/v1/runs/01890000-0000-7000-8000-000000000000')
	assertError(t, unknown, { status: 404, code: 'not_found', message: /there is no run/ })
	for (const id of ['nothing', '%00', '%ff', '%E2%82%AC', '..%2f', 'x'.repeat(65)]) {
		const { status, body } = await gateway.request('GET', `/v1/runs/${id}`)
		t.ok(status >= 400 && status < 500 && body.message, `${id}: ${status}`)
	}
})

void t.test('an invalid prompt is refused with the reason', async (t) => {
	const ada = await follow(t, gateway, 'bad-prompts')
	for (const [body, path, message] of [
		[{}, 'prompt', /prompt is required/],
		[{ prompt: '' }, 'prompt', /prompt is not allowed to be empty/],
		[{ prompt: 7 }, 'prompt', /prompt must be a string/],
		[{ prompt: null }, 'prompt', /prompt must be a string/],
		[{ prompt: ['x'] }, 'prompt', /prompt must be a string/],
		[{ prompt: 'x'.repeat(102_401) }, 'prompt', /prompt .*102400/],
		[{ prompt: `${'é'.repeat(51_200)}x` }, 'prompt', /prompt .*102400/],
		[{ prompt: 'x', stream: true }, 'stream', /stream is not allowed/],
		['null', '', /object/],
		['[]', '', /object/],
		['"Hello."', '', /object/],
	] as const)
		assertError(t, await ada.call('runs', body), { status: 400, code: 'invalid_request', path, message }, String(body))
	for (const text of ['{', 'Hello.', '{"prompt":"x"'])
		assertError(t, await ada.call('runs', text), { status: 400, code: 'invalid_request', message: /JSON/ }, text)
	assertError(t, await ada.call('runs', ''), { status: 400, code: 'invalid_request' }, 'no body')
	const huge = { prompt: 'x'.repeat(1024 * 1024) }
	assertError(t, await ada.call('runs', huge), { status: 413, code: 'payload_too_large' })
	const plain = { body: '{"prompt":"x"}', headers: { 'content-type': 'text/plain' } }
	const typed = await gateway.request('POST', '/v1/agents/bad-prompts/runs', plain)
	assertError(t, typed, { status: 415, code: 'unsupported_media_type' })
	t.strictSame((await ada.call('runs')).body, [])
})

void t.test('the longest prompt is accepted, and any text is stored unchanged', async (t) => {
	const ada = await follow(t, gateway, 'long-prompts')
	const longest = 'é'.repeat(51_200)
	t.equal((await ada.read(await ada.complete(longest))).prompt, longest)
	for (const prompt of ['\u0000', '\ud800 half a pair', '{{secret:X}}', '😀\u202e"\\'])
		t.equal((await ada.read(await ada.complete(prompt))).prompt, prompt)
})

void t.test('an unknown agent is 404 on every path of runs', async (t) => {
	for (const [method, path, body] of [
		['POST', 'runs', { prompt: 'x' }],
		['GET', 'runs'],
		['POST', 'stop', {}],
		['POST', 'reset', {}],
		['GET', 'history'],
		['GET', 'questions'],
		['POST', 'ask-responses/q', { answer: 'x' }],
	] as const) {
		for (const name of ['nobody', 'constructor', '__proto__', '%F0%9F%98%80']) {
			const reply = await gateway.request(method, `/v1/agents/${name}/${path}`, body ? { body } : {})
			assertError(
				t,
				reply,
				{ status: 404, code: 'not_found', message: /there is no agent/ },
				`${method} ${name}/${path}`,
			)
		}
		for (const name of ['%00', 'x'.repeat(65), '%ff']) {
			const { status } = await gateway.request(method, `/v1/agents/${name}/${path}`, body ? { body } : {})
			t.ok(status >= 400 && status < 500, `${method} ${name}/${path}: ${status}`)
		}
	}
})

void t.test('the same idempotency key returns the same run', async (t) => {
	const ada = await follow(t, gateway, 'once')
	const bob = await follow(t, gateway, 'once-too')
	const post = (agent: string, prompt: string, key: string) =>
		gateway.request('POST', `/v1/agents/${agent}/runs`, { body: { prompt }, headers: { 'idempotency-key': key } })

	const first = await post('once', 'Hello.', 'key-1')
	t.equal(first.status, 200)
	t.strictSame((await post('once', 'Hello.', 'key-1')).body, first.body)
	await ada.ended(first.body.run_id)
	t.strictSame((await post('once', 'Hello.', 'key-1')).body, first.body, 'also after its end')

	const other = await post('once', 'Something else.', 'key-1')
	assertError(t, other, { status: 409, code: 'idempotency_mismatch', message: /another body.*new key/ })
	const second = await post('once', 'Hello.', 'key-2')
	t.not(second.body.run_id, first.body.run_id)
	await ada.ended(second.body.run_id)
	t.equal((await ada.call('runs')).body.length, 2)

	const elsewhere = await post('once-too', 'Hello.', 'key-1')
	t.not(elsewhere.body.run_id, first.body.run_id, 'each agent has its own keys')
	await bob.ended(elsewhere.body.run_id)

	assertError(t, await post('once', 'x', 'k'.repeat(256)), {
		status: 400,
		code: 'invalid_request',
		path: 'idempotency-key',
	})
	assertError(t, await post('once', 'x', ''), { status: 400, code: 'invalid_request', path: 'idempotency-key' })
})

void t.test('concurrent requests with one idempotency key start one run', async (t) => {
	const ada = await follow(t, gateway, 'at-once')
	const replies = await Promise.all(
		Array.from({ length: 20 }, () =>
			gateway.request('POST', '/v1/agents/at-once/runs', {
				body: { prompt: 'Hello.' },
				headers: { 'idempotency-key': 'same' },
			}),
		),
	)
	t.ok(replies.every((reply) => reply.status === 200))
	const ids = new Set(replies.map((reply) => reply.body.run_id))
	t.equal(ids.size, 1)
	await ada.ended([...ids][0])
	t.equal((await ada.call('runs')).body.length, 1)
	t.equal(ada.stream.events.filter((event) => event.event_type === 'run.started').length, 1)
})

void t.test('the history has the messages of the session, oldest first', async (t) => {
	const ada = await follow(t, gateway, 'historian')
	t.strictSame((await ada.call('history')).body, [])
	const first = await ada.complete('First.')
	const second = await ada.complete('Second.')
	const { status, body } = await ada.call('history')
	t.equal(status, 200)
	t.strictSame(
		body.map(({ role, content }: { role: string; content: string }) => ({ role, content })),
		[
			{ role: 'user', content: 'First.' },
			{ role: 'assistant', content: (await ada.read(first)).answer },
			{ role: 'user', content: 'Second.' },
			{ role: 'assistant', content: (await ada.read(second)).answer },
		],
	)
	for (const message of body) {
		t.match(message.timestamp, ISO)
		t.strictSame(Object.keys(message).toSorted(), ['content', 'role', 'timestamp'])
	}
})

void t.test('a reset empties history and short-term memory, and keeps the runs', async (t) => {
	const ada = await follow(t, gateway, 'forgetful')
	const noteOf = async (): Promise<unknown> => {
		const run_id = await ada.complete('/tool memory.stm_read {"key":"colour"}')
		return JSON.parse(String((await ada.waitFor(run_id, 'primitive.result')).payload.result)).value
	}
	await ada.complete('/tool memory.stm_write {"key":"colour","value":{"name":"blue"}}')
	t.strictSame(await noteOf(), { name: 'blue' })

	const { status, body } = await ada.call('reset', {})
	t.equal(status, 200)
	t.strictSame(body, { agent: 'forgetful', status: 'reset' })
	await ada.stream.waitFor('agent.reset')
	t.strictSame((await ada.call('history')).body, [])
	t.equal(await noteOf(), null)
	t.equal((await ada.call('history')).body.length, 2)
	t.equal((await ada.call('runs')).body.length, 3)

	assertError(t, await ada.call('reset', { hard: true }), { status: 400, code: 'invalid_request', path: 'hard' })
	const bare = await gateway.request('POST', '/v1/agents/forgetful/reset')
	t.equal(bare.status, 200, 'no body is needed')
})

void t.test('the model gets the turns of the session, and none from before a reset', async (t) => {
	const model = await startManualModel()
	const own = await startGateway({
		config: providersAt({ held: model.url }),
	})
	t.teardown(async () => {
		await own.stop()
		await model.stop()
	})
	const ada = await follow(t, own, 'ada', { persona: 'You are Ada.', config: { model: 'big', temperature: 0.5 } })
	const turn = async (prompt: string, answer: string): Promise<Record<string, unknown>> => {
		const run_id = await ada.start(prompt)
		const call = await model.called(prompt)
		call.answer(answer)
		await ada.ended(run_id)
		return call.body
	}
	await turn('One.', 'first')
	const second = await turn('Two.', 'second')
	t.match(second, { model: 'big', temperature: 0.5, stream: true })
	t.match(withoutAdditions(second.messages as { role: string }[]), [
		{ role: 'system', content: /You are Ada\./ },
		{ role: 'user', content: 'One.' },
		{ role: 'assistant', content: 'Well, first' },
		{ role: 'user', content: 'Two.' },
	])

	const third = await ada.start('Three.')
	const lateCall = await model.called('Three.')
	await ada.call('reset', {})
	const fourth = await turn('Four.', 'fourth')
	const messages = withoutAdditions(fourth.messages as { role: string }[])
	t.match(messages, [{ role: 'system' }, { role: 'user', content: 'Four.' }])
	t.equal(messages.length, 2)
	lateCall.answer('late')
	await ada.ended(third)
	t.strictSame(
		(await ada.call('history')).body.map((message: { content: string }) => message.content),
		['Four.', 'Well, fourth'],
		'a run of the old session that ends later is not in the history',
	)
})

void t.test('each operation requires its scope', async (t) => {
	const ada = await follow(t, gateway, 'scoped')
	const run_id = await ada.complete('Hello.')
	const { token: read } = await addToken(gateway, ['agents:read'])
	const { token: write } = await addToken(gateway, ['runs:write'])
	for (const [method, path, body, scope] of [
		['POST', '/v1/agents/scoped/runs', { prompt: 'x' }, 'runs:write'],
		['POST', '/v1/agents/scoped/stop', {}, 'runs:write'],
		['POST', `/v1/runs/${run_id}/cancel`, {}, 'runs:write'],
		['POST', '/v1/agents/scoped/ask-responses/none', { answer: 'x' }, 'runs:write'],
		['GET', '/v1/agents/scoped/runs', undefined, 'agents:read'],
		['GET', `/v1/runs/${run_id}`, undefined, 'agents:read'],
		['GET', '/v1/agents/scoped/history', undefined, 'agents:read'],
		['GET', '/v1/agents/scoped/questions', undefined, 'agents:read'],
	] as const) {
		const [right, wrong] = scope === 'agents:read' ? [read, write] : [write, read]
		const reply = await gateway.request(method, path, { token: wrong, ...(body && { body }) })
		assertError(t, reply, { status: 403, code: 'forbidden', message: new RegExp(scope) }, `${method} ${path}`)
		const allowed = await gateway.request(method, path, { token: right, ...(body && { body }) })
		t.not(allowed.status, 403, `${method} ${path} with ${scope}`)
	}
})
