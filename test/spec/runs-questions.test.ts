/** Questions of agents, paused runs and answers, and the events of primitives, over HTTP. */
import t from 'tap'
import { makeHome, send, startGateway } from '../support/gateway.ts'
import type { Answer } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import { spawnGateway } from '../support/process.ts'
import { providersAt } from '../support/providers.ts'
import { assertError } from '../support/error-response.ts'
import { testFolder } from '../support/folder.ts'
import { follow } from '../support/runs.ts'
import type { Followed } from '../support/runs.ts'
import { openStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'
import { withoutAdditions } from '../support/model-messages.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())

const ask = (question: string, options?: string[]): string => `/tool ask ${JSON.stringify({ question, options })}`

/** Starts a run that asks, and waits until it is paused. */
async function pause(ada: Followed, prompt: string): Promise<{ run_id: string; question_id: string }> {
	const run_id = await ada.start(prompt)
	const asked = await ada.waitFor(run_id, 'question.asked')
	await ada.waitFor(run_id, 'run.paused')
	return { run_id, question_id: String(asked.payload.question_id) }
}

void t.test('a question pauses the run, and the answer completes it', async (t) => {
	const ada = await follow(t, gateway, 'asker')
	const { run_id, question_id } = await pause(ada, ask('Which colour?', ['red', 'blue']))
	t.strictSame(ada.typesOf(run_id), [
		'run.started',
		'message.user',
		'model.request',
		'model.response',
		'primitive.called',
		'question.asked',
		'run.paused',
	])
	const question = { question_id, question: 'Which colour?', options: ['red', 'blue'] }
	t.strictSame((await ada.waitFor(run_id, 'question.asked')).payload, question)
	t.match(await ada.read(run_id), { status: 'paused', ended_at: null, answer: null, question })
	const open = (await ada.call('questions')).body
	t.match(open[0].asked_at, /^\d{4}-.*Z$/)
	t.strictSame(open, [{ ...question, run_id, asked_at: open[0].asked_at }])

	const { status, body } = await ada.call(`ask-responses/${question_id}`, { answer: 'blue' })
	t.equal(status, 200)
	t.strictSame(body, { question_id, status: 'answered' })
	await ada.ended(run_id)
	t.strictSame(ada.typesOf(run_id).slice(7), [
		'question.answered',
		'run.resumed',
		'primitive.result',
		'model.request',
		'model.response',
		'message.assistant',
		'run.completed',
	])
	t.match((await ada.waitFor(run_id, 'question.answered')).payload, { question_id, answer: 'blue' })
	t.match((await ada.waitFor(run_id, 'run.resumed')).payload, { question_id, reason: 'answer' })
	t.match((await ada.waitFor(run_id, 'primitive.result')).payload, { primitive: 'ask', result: '{"answer":"blue"}' })
	t.match(await ada.read(run_id), { status: 'completed', question: null, answer: /blue/ })
	t.strictSame((await ada.call('questions')).body, [])
	const sequences = ada.stream.events.filter((event) => event.run_id === run_id).map((event) => event.sequence)
	t.ok(sequences.every((one, at) => at === 0 || one > (sequences[at - 1] ?? 0)))
})

void t.test('a question without options has none', async (t) => {
	const ada = await follow(t, gateway, 'open-asker')
	const { question_id } = await pause(ada, ask('Why?'))
	t.notOk('options' in (await ada.call('questions')).body[0])
	t.equal((await ada.call(`ask-responses/${question_id}`, { answer: '' })).status, 200, 'the answer may be empty')
})

void t.test('a run can ask several questions', async (t) => {
	const ada = await follow(t, gateway, 'insistent')
	const run_id = await ada.start([ask('First?'), ask('Second?'), ask('Third?')].join('\n'))
	for (const [at, answer] of ['one', 'two', 'three'].entries()) {
		const asked = await ada.waitFor(run_id, 'question.asked', at + 1)
		await ada.waitFor(run_id, 'run.paused', at + 1)
		t.equal((await ada.call('questions')).body.length, 1)
		await ada.call(`ask-responses/${asked.payload.question_id}`, { answer })
	}
	await ada.ended(run_id)
	const results = ada.eventsOf(run_id).filter((event) => event.event_type === 'primitive.result')
	t.strictSame(
		results.map((event) => event.payload.result),
		['{"answer":"one"}', '{"answer":"two"}', '{"answer":"three"}'],
	)
	t.equal(
		new Set(ada.eventsOf(run_id).map((event) => event.payload.question_id)).size,
		4,
		'three ids, and events without one',
	)
})

void t.test('a paused run blocks the runs behind it until its question is answered', async (t) => {
	const ada = await follow(t, gateway, 'holder')
	const { run_id, question_id } = await pause(ada, ask('Go on?'))
	const queued = await ada.start('Behind it.')
	t.equal((await ada.read(queued)).status, 'queued')
	await ada.call(`ask-responses/${question_id}`, { answer: 'yes' })
	await ada.ended(queued)
	const ends = ada.stream.events.filter((event) => event.event_type === 'run.completed')
	t.strictSame(
		ends.map((event) => event.run_id),
		[run_id, queued],
	)
})

void t.test('an agent has no access to the questions of another one', async (t) => {
	const ada = await follow(t, gateway, 'apart-1')
	const bob = await follow(t, gateway, 'apart-2')
	const { run_id, question_id } = await pause(ada, ask('Mine?'))
	t.strictSame((await bob.call('questions')).body, [])
	const wrong = await bob.call(`ask-responses/${question_id}`, { answer: 'x' })
	assertError(t, wrong, { status: 404, code: 'not_found', message: /no question .*questions lists the open ones/ })
	t.equal((await ada.read(run_id)).status, 'paused')
})

void t.test('a question is answered once', async (t) => {
	const ada = await follow(t, gateway, 'once')
	const { run_id, question_id } = await pause(ada, ask('Once?'))
	const answer = (text: string) => ada.call(`ask-responses/${question_id}`, { answer: text })
	const replies = await Promise.all(Array.from({ length: 10 }, (_, n) => answer(`answer ${n}`)))
	t.equal(replies.filter((reply) => reply.status === 200).length, 1)
	const accepted = replies.findIndex((reply) => reply.status === 200)
	for (const reply of replies.filter((one) => one.status !== 200))
		assertError(t, reply, { status: 409, code: 'already_answered', message: /was answered at \d{4}-/ })
	await ada.ended(run_id)
	assertError(t, await answer('later'), { status: 409, code: 'already_answered' }, 'after the end of the run too')
	t.equal((await ada.waitFor(run_id, 'question.answered')).payload.answer, `answer ${accepted}`)
	t.equal(ada.typesOf(run_id).filter((type) => type === 'question.answered').length, 1)
})

void t.test('an invalid answer is refused, and the question stays open', async (t) => {
	const ada = await follow(t, gateway, 'strict')
	const { run_id, question_id } = await pause(ada, ask('Well?'))
	const path = `ask-responses/${question_id}`
	for (const [body, field, message] of [
		[{}, 'answer', /answer is required/],
		[{ answer: 7 }, 'answer', /answer must be a string/],
		[{ answer: null }, 'answer', /answer must be a string/],
		[{ answer: ['yes'] }, 'answer', /answer must be a string/],
		[{ answer: 'x'.repeat(102_401) }, 'answer', /answer .*102400/],
		[{ answer: 'yes', why: 'so' }, 'why', /why is not allowed/],
		['"yes"', '', /object/],
		['null', '', /object/],
	] as const)
		assertError(
			t,
			await ada.call(path, body),
			{ status: 400, code: 'invalid_request', path: field, message },
			String(body),
		)
	assertError(t, await ada.call(path, '{"answer":'), { status: 400, code: 'invalid_request', message: /JSON/ })
	assertError(t, await ada.call(path, ''), { status: 400, code: 'invalid_request' }, 'an empty body')
	const bare = await gateway.request('POST', `/v1/agents/strict/${path}`)
	assertError(t, bare, { status: 400, code: 'invalid_request' }, 'no body')
	assertError(t, await ada.call(path, { answer: 'x'.repeat(1024 * 1024) }), { status: 413, code: 'payload_too_large' })
	for (const id of ['nothing', 'constructor', `${question_id}0`])
		assertError(t, await ada.call(`ask-responses/${id}`, { answer: 'x' }), { status: 404, code: 'not_found' }, id)
	for (const id of ['%00', '%ff', 'x'.repeat(65), '%F0%9F%98%80', '..%2f..']) {
		const { status } = await ada.call(`ask-responses/${id}`, { answer: 'x' })
		t.ok(status >= 400 && status < 500, `${id}: ${status}`)
	}
	t.equal((await ada.read(run_id)).status, 'paused')
	t.equal((await ada.call('questions')).body.length, 1)
})

void t.test('an answer right after question.asked is accepted', async (t) => {
	const ada = await follow(t, gateway, 'quick')
	for (let round = 0; round < 10; round++) {
		const run_id = await ada.start(`${ask(`Round ${round}?`)}\n${ask('Sure?')}`)
		for (const n of [1, 2]) {
			const { payload } = await ada.waitFor(run_id, 'question.asked', n)
			t.equal((await ada.call(`ask-responses/${payload.question_id}`, { answer: `${round}-${n}` })).status, 200)
		}
		t.equal((await ada.ended(run_id)).event_type, 'run.completed')
		t.match(await ada.read(run_id), { status: 'completed', question: null, answer: new RegExp(`${round}-2`) })
	}
	t.strictSame((await ada.call('questions')).body, [])
})

void t.test('once run.paused has arrived, the run is read as paused', async (t) => {
	const ada = await follow(t, gateway, 'paused-reader')
	for (let round = 0; round < 10; round++) {
		const { run_id, question_id } = await pause(ada, ask('Well?'))
		t.match(await ada.read(run_id), { status: 'paused', question: { question_id } })
		await ada.call(`ask-responses/${question_id}`, { answer: 'x' })
		await ada.ended(run_id)
	}
})

void t.test('invalid arguments of ask do not pause the run', async (t) => {
	const ada = await follow(t, gateway, 'clumsy')
	for (const [args, message] of [
		['{}', /"question" is required/],
		['{"question":""}', /not allowed to be empty/],
		['{"question":7}', /must be a string/],
		['{"question":"x","options":[]}', /at least 1/],
		['{"question":"x","options":"yes"}', /must be an array/],
		['{"question":"x","colour":"red"}', /"colour" is not allowed/],
		['{"question":', /not JSON/],
	] as const) {
		const run_id = await ada.complete(`/tool ask ${args}`)
		const { payload } = await ada.waitFor(run_id, 'primitive.failed')
		t.match(payload, { primitive: 'ask', code: 'invalid_arguments', message }, args)
		t.notOk(ada.typesOf(run_id).includes('run.paused'))
	}
})

void t.test('a call of a primitive emits events at its start and its end', async (t) => {
	const ada = await follow(t, gateway, 'caller')
	const run_id = await ada.complete(
		'/tool memory.stm_write {"key":"a","value":[1,{"b":null}]}\n/tool memory.stm_read {"key":"a"}',
	)
	const events = ada.eventsOf(run_id).filter((event) => event.event_type.startsWith('primitive.'))
	t.match(events, [
		{
			event_type: 'primitive.called',
			payload: { primitive: 'memory.stm_write', call_id: String, arguments: '{"key":"a","value":[1,{"b":null}]}' },
		},
		{ event_type: 'primitive.result', payload: { primitive: 'memory.stm_write', result: '{"key":"a","notes":1}' } },
		{ event_type: 'primitive.called', payload: { primitive: 'memory.stm_read', arguments: '{"key":"a"}' } },
		{ event_type: 'primitive.result', payload: { result: '{"key":"a","value":[1,{"b":null}]}' } },
	])
	const ids = events.map((event) => event.payload.call_id)
	t.ok(ids[0] === ids[1] && ids[2] === ids[3] && ids[0] !== ids[2], 'both have the same call_id')
	t.match(await ada.read(run_id), { answer: /\[1,\{"b":null\}\]/ })
})

void t.test('a failed call is reported to the model, and the run continues', async (t) => {
	const ada = await follow(t, gateway, 'failing')
	for (const [line, code, message] of [
		['/tool nothing.here {}', 'tool_unknown', /there is no tool "nothing.here"; there are: .*memory.stm_read/],
		['/tool memory.stm_write {"key":"a"}', 'invalid_arguments', /"value" is required/],
		['/tool memory.stm_write {"key":"__proto__","value":1}', 'invalid_arguments', /"key"/],
		[`/tool memory.stm_write {"key":"a","value":"${'x'.repeat(17_000)}"}`, 'invalid_arguments', /at most 16384/],
	] as const) {
		const run_id = await ada.complete(line)
		const { payload } = await ada.waitFor(run_id, 'primitive.failed')
		t.match(payload, { call_id: String, code, message }, line.slice(0, 60))
		t.notOk(ada.typesOf(run_id).includes('primitive.result'))
		t.match(await ada.read(run_id), { status: 'completed', error: null, answer: new RegExp(code) })
	}
})

void t.test('short-term memory has at most 64 notes, and the latest messages', async (t) => {
	const ada = await follow(t, gateway, 'notes', { config: { limits: { steps: 100 } } })
	const write = (n: number, value: unknown): string =>
		`/tool memory.stm_write ${JSON.stringify({ key: `note ${n}`, value })}`
	await ada.complete(Array.from({ length: 64 }, (_, n) => write(n, n)).join('\n'))
	const over = await ada.complete(`${write(64, 'too many')}\n${write(3, null)}\n${write(64, 'fits')}`)
	t.match((await ada.waitFor(over, 'primitive.failed')).payload, { message: /at most 64 keys; write null/ })
	const reading = await ada.complete('/tool memory.stm_read {}')
	const read = JSON.parse(String((await ada.waitFor(reading, 'primitive.result')).payload.result))
	t.equal(Object.keys(read.notes).length, 64)
	t.equal(read.notes['note 64'], 'fits')
	t.notOk('note 3' in read.notes)
	t.ok(read.messages.length > 0)
	for (const message of read.messages) t.strictSame(Object.keys(message), ['role', 'content'])
})

void t.test('a paused run survives a restart, and its answer completes it', async (t) => {
	const home = testFolder(t)
	const first = await startGateway({ home })
	const before = await follow(t, first, 'ada', { persona: 'You are Ada.' })
	const { run_id, question_id } = await pause(
		before,
		`/tool memory.stm_write {"key":"a","value":1}\n${ask('Still there?')}`,
	)
	const queued = await before.start('Behind it.')
	const paused = await before.read(run_id)
	await first.stop()

	const second = await startGateway({ home })
	t.teardown(() => second.stop())
	const after = await follow(t, second, 'ada')
	t.strictSame(await after.read(run_id), paused)
	t.match((await after.call('questions')).body, [{ question_id, run_id, question: 'Still there?' }])
	t.equal((await after.read(queued)).status, 'queued')
	t.equal((await after.call(`ask-responses/${question_id}`, { answer: 'yes, still' })).status, 200)
	await after.ended(run_id)
	t.match(await after.read(run_id), { status: 'completed', answer: /yes, still/ })
	await after.ended(queued)
	t.equal((await after.read(queued)).status, 'completed')

	const { events } = (await second.request('GET', `/v1/audit?run_id=${run_id}&limit=500`)).body
	const types: string[] = events.toReversed().map((event: { event_type: string }) => event.event_type)
	t.equal(types.filter((type) => type === 'run.started').length, 1)
	t.equal(types.filter((type) => type === 'primitive.called').length, 2, 'no call is made twice')
	const sequences: number[] = events.toReversed().map((event: { sequence: number }) => event.sequence)
	t.ok(sequences.every((one, at) => at === 0 || one > (sequences[at - 1] ?? 0)))
})

void t.test('runs that pause during a kill are paused afterwards, and have asked once', async (t) => {
	const home = testFolder(t)
	const first = await spawnGateway(home)
	t.teardown(() => first.kill())
	const names = Array.from({ length: 24 }, (_, n) => `agent-${n}`)
	await Promise.all(names.map((name) => send(`${first.url}/v1/agents`, 'POST', { body: { name } })))
	const stream = await openStream(first.url, { query: { event_type: 'run.paused' } })
	const killed = stream.waitFor('run.paused', 6).then(() => first.kill())
	const runs: { name: string; run_id: string }[] = []
	const start = async (name: string): Promise<void> => {
		const reply = await send(`${first.url}/v1/agents/${name}/runs`, 'POST', { body: { prompt: ask('Go on?') } })
		runs.push({ name, run_id: reply.body.run_id })
	}
	// A request that the kill cuts off was not acknowledged.
	await Promise.all(names.map((name) => start(name).catch(() => {})))
	await killed
	t.ok(runs.length >= 6)

	const second = await startGateway({ home })
	t.teardown(() => second.stop())
	const completed = await openStream(second.url, { query: { event_type: 'run.completed' } })
	t.teardown(() => completed.close())
	for (const { name, run_id } of runs) {
		const run: Answer = await eventually(
			async () => (await second.request('GET', `/v1/runs/${run_id}`)).body,
			({ status }) => status === 'paused',
		)
		t.match(run, { status: 'paused', question: { question: 'Go on?' } })
		const path = `/v1/agents/${name}/ask-responses/${run.question.question_id}`
		t.equal((await second.request('POST', path, { body: { answer: 'yes' } })).status, 200)
	}
	await completed.waitFor('run.completed', runs.length)
	for (const { run_id } of runs) {
		t.match((await second.request('GET', `/v1/runs/${run_id}`)).body, { status: 'completed', answer: /yes/ })
		const { events } = (await second.request('GET', `/v1/audit?run_id=${run_id}`)).body
		const types: string[] = events.map((event: { event_type: string }) => event.event_type)
		for (const once of ['question.asked', 'run.paused', 'question.answered', 'primitive.result'])
			t.equal(types.filter((type) => type === once).length, 1, once)
	}
})

void t.test('a model call from before the restart is not repeated', async (t) => {
	const model = await startManualModel()
	const home = makeHome({ config: `server: { shutdown_grace_s: 0 }\n${providersAt({ held: model.url })}` }, t)
	t.teardown(() => model.stop())
	const first = await startGateway({ home })
	const before = await follow(t, first, 'ada')
	const run_id = await before.start('What shall it be?')
	;(await model.called('What shall it be?')).callTool('ask', '{"question":"Which colour?"}')
	await before.waitFor(run_id, 'run.paused')
	await first.stop()

	const second = await startGateway({ home })
	t.teardown(() => second.stop())
	const after = await follow(t, second, 'ada')
	const [question] = (await after.call('questions')).body
	await after.call(`ask-responses/${question.question_id}`, { answer: 'blue' })
	const call = await model.called('What shall it be?', 2)
	t.equal(model.calls.length, 2)
	t.match(withoutAdditions(call.body.messages as { role: string }[]), [
		{ role: 'user', content: 'What shall it be?' },
		{ role: 'assistant', tool_calls: [{ function: { name: 'ask' } }] },
		{ role: 'tool', content: '{"answer":"blue"}' },
	])
	call.answer('blue it is')
	await after.ended(run_id)
	t.match(await after.read(run_id), { status: 'completed', answer: 'Well, blue it is' })
})
