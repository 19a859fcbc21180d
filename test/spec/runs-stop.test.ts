/** The order of runs, and how they are stopped and cancelled, over HTTP. */
import t from 'tap'
import type { Test } from 'tap'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import type { ManualModel } from '../support/manual-model.ts'
import { providersAt } from '../support/providers.ts'
import { assertError } from '../support/error-response.ts'
import { follow } from '../support/runs.ts'

/** A tool that ignores a stop: it waits until POST /v1/gate. */
const gate = `
const waiting = []
export default {
	name: 'gate',
	needs: ['auth'],
	start(ctx) {
		ctx.primitive({ name: 'gate.wait', description: 'Waits.', run: () => new Promise((resolve) => waiting.push(resolve)) })
	},
	http(server) {
		server.route({ method: 'POST', path: '/v1/gate', handler: () => {
			const count = waiting.length
			for (const resolve of waiting.splice(0)) resolve('open')
			return { count }
		} })
	},
}
`

/** A gateway whose default model answers on command. The provider `offline` answers at once. */
async function start(t: Test, more = ''): Promise<{ gateway: TestGateway; model: ManualModel }> {
	const model = await startManualModel()
	const gateway = await startGateway({
		config: `server:
  shutdown_grace_s: 0
default_provider: held
${providersAt({ held: model.url })}  offline: { kind: offline }
plugins:
  gate: true
${more}`,
		files: { 'plugins/gate/index.js': gate },
	})
	t.teardown(async () => {
		await gateway.stop()
		await model.stop()
	})
	return { gateway, model }
}

const offline = { config: { provider: 'offline' } }

void t.test('runs of one conversation execute in order, and those of another agent in parallel', async (t) => {
	const { gateway, model } = await start(t)
	const ada = await follow(t, gateway, 'ada')
	const bob = await follow(t, gateway, 'bob')
	const first = await ada.start('a1')
	const reply = await ada.call('runs', { prompt: 'a2' })
	t.equal(reply.body.status, 'started', "the spec's status, even for a queued run")
	const second = reply.body.run_id
	const third = await ada.start('a3')
	const other = await bob.start('b1')

	const a1 = await model.called('a1')
	const b1 = await model.called('b1')
	b1.answer('done')
	await bob.ended(other)
	t.match(await ada.read(first), { status: 'started' })
	t.match(await ada.read(second), { status: 'queued', started_at: null })
	t.match(await ada.read(third), { status: 'queued' })
	await ada.waitFor(third, 'run.queued')
	t.strictSame(ada.typesOf(second), ['run.queued'])
	t.match(ada.eventsOf(second), [{ sequence: 1, payload: { conversation: String } }])

	a1.answer('done')
	await ada.ended(first)
	const a2 = await model.called('a2')
	t.match(await ada.read(second), { status: 'started', started_at: String })
	t.match(await ada.read(third), { status: 'queued' })
	a2.answer('done')
	const a3 = await model.called('a3')
	a3.answer('done')
	await ada.ended(third)
	const order = ada.stream.events.filter((event) => ['run.started', 'run.completed'].includes(event.event_type))
	t.strictSame(
		order.map((event) => [event.run_id, event.event_type]),
		[first, second, third].flatMap((run) => [
			[run, 'run.started'],
			[run, 'run.completed'],
		]),
	)
	t.strictSame(
		model.calls.map((call) => call.prompt).filter((prompt) => prompt.startsWith('a')),
		['a1', 'a2', 'a3'],
	)
})

void t.test('no waiting run calls its model while its agent is being stopped', async (t) => {
	const { gateway, model } = await start(t, 'workers: {threads: 1, runs_per_thread: 4}\n')
	const ada = await follow(t, gateway, 'ada')
	const conversations = Array.from({ length: 40 }, (_, n) => `c${n}`)
	const prompts = conversations.map((conversation) => ada.call('runs', { prompt: 'Wait.', conversation }))
	const ids = (await Promise.all(prompts)).map(({ body }) => body.run_id as string)
	await model.called('Wait.', 4)
	const before = model.calls.length
	t.ok(before < ids.length / 2, 'the others wait for a place')

	const stop = () => gateway.request('POST', '/v1/agents/ada/stop')
	for (const { status } of await Promise.all([stop(), stop()])) t.equal(status, 200)
	for (const id of ids) t.equal((await ada.ended(id)).event_type, 'run.stopped')
	t.equal(model.calls.length, before)

	const next = await ada.start('Go on.')
	;(await model.called('Go on.')).answer('done')
	t.equal((await ada.ended(next)).event_type, 'run.completed')
	t.equal(model.calls.length, before + 1, 'none of them calls it later')
})

void t.test('a failed run does not block the runs behind it', async (t) => {
	const { gateway } = await start(t)
	const ada = await follow(t, gateway, 'ada', { config: { provider: 'nowhere' } })
	const runs = [await ada.start('one'), await ada.start('two'), await ada.start('three')]
	for (const run of runs) t.equal((await ada.ended(run)).event_type, 'run.failed')
})

void t.test('runs.max_waiting limits the waiting runs of a conversation', async (t) => {
	const { gateway, model } = await start(t, 'runs:\n  max_waiting: 2\n')
	const ada = await follow(t, gateway, 'ada')
	const bob = await follow(t, gateway, 'bob')
	const first = await ada.start('a1')
	await ada.start('a2')
	await ada.start('a3')
	const reply = await ada.call('runs', { prompt: 'a4' })
	assertError(t, reply, { status: 429, code: 'queue_full', message: /2 runs wait .*stop the agent/ })
	t.match(reply.headers.get('retry-after'), /^[1-9]\d*$/)
	t.equal((await ada.call('runs')).body.length, 3, 'a refused run is not listed')
	await bob.start('b1')

	const a1 = await model.called('a1')
	a1.answer('done')
	await ada.ended(first)
	await ada.read(first)
	t.equal((await ada.call('runs', { prompt: 'a4' })).status, 200, 'a place is free again')
	const crowd = await Promise.all(Array.from({ length: 10 }, () => ada.call('runs', { prompt: 'crowd' })))
	t.strictSame(new Set(crowd.map((one) => one.status)), new Set([429]), 'concurrent requests do not exceed the limit')
})

void t.test('a stop answers once all runs have stopped', async (t) => {
	const { gateway, model } = await start(t)
	const ada = await follow(t, gateway, 'ada')
	const bob = await follow(t, gateway, 'bob')
	const active = await ada.start('a1')
	const queued = [await ada.start('a2'), await ada.start('a3')]
	const other = await bob.start('b1')
	const a1 = await model.called('a1')
	const b1 = await model.called('b1')
	await ada.waitFor(active, 'model.stream')

	const { status, body } = await ada.call('stop', {})
	t.equal(status, 200)
	t.strictSame(body, { agent: 'ada', status: 'stopped' })
	for (const run of [active, ...queued]) {
		const record = await ada.read(run)
		t.match(record, { status: 'stopped', answer: null, error: null })
		t.match(record.ended_at, /Z$/)
	}
	const { events } = (await gateway.request('GET', '/v1/audit?agent_id=ada&limit=500')).body
	for (const run of [active, ...queued]) {
		const own = events.filter((event: { run_id: string }) => event.run_id === run)
		t.equal(own[0]?.event_type, 'run.stopped')
		t.equal(own.filter((event: { event_type: string }) => /run\.(stopped|completed)/.test(event.event_type)).length, 1)
	}
	await a1.hungUp
	t.equal(model.calls.filter((call) => call.prompt.startsWith('a')).length, 1, 'the queued runs never called the model')

	t.ok(b1.open, 'the run of another agent continues')
	b1.answer('done')
	t.equal((await bob.ended(other)).event_type, 'run.completed')

	const next = await ada.start('a4')
	const a4 = await model.called('a4')
	a4.answer('done')
	await ada.ended(next)
	for (const run of [active, ...queued])
		t.equal(ada.stream.events.findLast((event) => event.run_id === run)?.event_type, 'run.stopped', 'no later event')
	t.strictSame(
		(await ada.call('history')).body.map((message: { content: string }) => message.content),
		['a1', 'a4', 'Well, done'],
	)
})

void t.test('a stop ends a run whose tool ignores it, and the result of the tool is discarded', async (t) => {
	const { gateway } = await start(t)
	const ada = await follow(t, gateway, 'ada', offline)
	const run = await ada.start('/tool gate.wait {}')
	await ada.waitFor(run, 'primitive.called')
	t.equal((await ada.call('stop', {})).status, 200)
	t.equal((await ada.read(run)).status, 'stopped')
	const opened = await gateway.request('POST', '/v1/gate', { body: {} })
	t.equal(opened.body.count, 1)
	await ada.complete('Hello again.')
	const { events } = (await gateway.request('GET', `/v1/audit?run_id=${run}`)).body
	t.match(events, [{ event_type: 'run.stopped' }, { event_type: 'primitive.called' }])
})

void t.test('a stop stops paused runs and the runs behind them', async (t) => {
	const { gateway } = await start(t)
	const ada = await follow(t, gateway, 'ada', offline)
	const paused = await ada.start('/tool ask {"question":"Go on?"}')
	const { question_id } = (await ada.waitFor(paused, 'question.asked')).payload
	await ada.waitFor(paused, 'run.paused')
	const queued = await ada.start('Behind it.')
	t.equal((await ada.read(queued)).status, 'queued')

	t.equal((await ada.call('stop', {})).status, 200)
	for (const run of [paused, queued]) t.match(await ada.read(run), { status: 'stopped', question: null })
	t.equal(ada.typesOf(paused).at(-1), 'run.stopped')
	t.strictSame((await ada.call('questions')).body, [])
	const late = await ada.call(`ask-responses/${question_id}`, { answer: 'yes' })
	assertError(t, late, { status: 409, code: 'conflict', message: /has ended/ })
	await ada.complete('Hello again.')
})

void t.test('a stop while a run starts, pauses or ends results in exactly one final event', async (t) => {
	const { gateway } = await start(t)
	const ada = await follow(t, gateway, 'ada', offline)
	const prompts = ['Hello.', '/tool ask {"question":"Go on?"}', '/tool memory.stm_read {}']
	const runs: string[] = []
	for (let round = 0; round < 24; round++) {
		const prompt = prompts[round % prompts.length] ?? ''
		const run = await ada.start(prompt)
		runs.push(run)
		// Each time at a later point of the run.
		const wait = ['', 'run.started', 'model.request', 'model.response'][Math.floor(round / prompts.length) % 4]
		if (wait) await ada.waitFor(run, wait)
		t.equal((await ada.call('stop', {})).status, 200)
		const { status } = await ada.read(run)
		t.ok(status === 'stopped' || status === 'completed', `${round}: ${status}`)
	}
	await ada.complete('The last one.')
	for (const run of runs) {
		const { events } = (await gateway.request('GET', `/v1/audit?run_id=${run}`)).body
		const ends = events.filter((event: { event_type: string }) =>
			/run\.(completed|failed|stopped)/.test(event.event_type),
		)
		t.equal(ends.length, 1, 'one final event')
		t.equal(events[0]?.event_id, ends[0]?.event_id, 'no later event')
		t.equal((await ada.read(run)).status, ends[0]?.event_type.slice(4))
	}
})

void t.test('a stop without runs succeeds, and accepts no parameters', async (t) => {
	const { gateway } = await start(t)
	const ada = await follow(t, gateway, 'ada', offline)
	t.strictSame((await ada.call('stop', {})).body, { agent: 'ada', status: 'stopped' })
	t.equal((await gateway.request('POST', '/v1/agents/ada/stop')).status, 200)
	const reply = await ada.call('stop', { force: true })
	assertError(t, reply, { status: 400, code: 'invalid_request', path: 'force', message: /force is not allowed/ })
	assertError(t, await ada.call('stop', '{'), { status: 400, code: 'invalid_request', message: /JSON/ })
})

void t.test('a cancel stops one run, and the runs behind it continue', async (t) => {
	const { gateway, model } = await start(t)
	const ada = await follow(t, gateway, 'ada')
	const [first, second, third] = [await ada.start('a1'), await ada.start('a2'), await ada.start('a3')]
	const a1 = await model.called('a1')
	const cancel = (run: string, body?: unknown) =>
		gateway.request('POST', `/v1/runs/${run}/cancel`, body === undefined ? {} : { body })

	const waiting = await cancel(second)
	t.equal(waiting.status, 200)
	t.match(waiting.body, { run_id: second, agent: 'ada', status: 'stopped', started_at: null })
	t.ok(a1.open, 'the active run continues')

	const active = await cancel(first, {})
	t.match(active.body, { run_id: first, status: 'stopped', ended_at: String })
	t.strictSame(active.body, await ada.read(first))
	await a1.hungUp
	const a3 = await model.called('a3')
	a3.answer('done')
	await ada.ended(third)
	t.strictSame(ada.typesOf(second), ['run.queued', 'run.stopped'])

	for (const [run, status] of [
		[first, 'stopped'],
		[second, 'stopped'],
		[third, 'completed'],
	] as const)
		assertError(t, await cancel(run), {
			status: 409,
			code: 'conflict',
			message: new RegExp(`has ended already: ${status}`),
		})
	assertError(t, await cancel('01890000-0000-7000-8000-000000000000'), { status: 404, code: 'not_found' })
	assertError(t, await cancel(third, { why: 'x' }), { status: 400, code: 'invalid_request', path: 'why' })
})

void t.test('concurrent cancels stop a run once', async (t) => {
	const { gateway, model } = await start(t)
	const ada = await follow(t, gateway, 'ada')
	const run = await ada.start('a1')
	await model.called('a1')
	const replies = await Promise.all(Array.from({ length: 10 }, () => gateway.request('POST', `/v1/runs/${run}/cancel`)))
	for (const { status, body } of replies) t.ok(status === 200 ? body.status === 'stopped' : body.code === 'conflict')
	t.ok(replies.some((reply) => reply.status === 200))
	await ada.ended(run)
	t.equal(ada.typesOf(run).filter((type) => type === 'run.stopped').length, 1)
})

void t.test('one request follows at most 20 earlier retries of a run', async (t) => {
	const { gateway } = await start(t)
	const ada = await follow(t, gateway, 'ada')
	const first = await ada.start('a1')
	const change = (run: string, to: string) => gateway.request('POST', `/v1/runs/${run}/${to}`)
	let last = first
	for (let n = 0; n < 20; n++) {
		await change(last, 'cancel')
		last = (await change(last, 'retry')).body.run_id
	}
	t.equal((await change(first, 'retry')).body.run_id, last, 'the 20th is found')
	await change(last, 'cancel')
	const refused = await change(first, 'retry')
	assertError(t, refused, { status: 409, code: 'conflict' })
	t.match(refused.body.message, `start the last of them again, which is run ${last}`)
	t.equal((await change(last, 'retry')).status, 200)
})
