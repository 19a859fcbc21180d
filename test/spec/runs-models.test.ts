/** Runs on model servers: limits, failures, retries and fallbacks, over HTTP. */
import t from 'tap'
import { startGateway } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import { watchDeadlines } from '../support/deadlines.ts'
import { closedPort } from '../support/free-ports.ts'
import { startModelServer } from '../support/model-server.ts'
import { providersAt } from '../support/providers.ts'
import { follow } from '../support/runs.ts'
import { openStream } from '../support/sse.ts'
import { withoutAdditions } from '../support/model-messages.ts'

const model = await startModelServer()
const held = await startManualModel()
const nobody = `http://127.0.0.1:${await closedPort(t)}/v1`
const gateway = await startGateway({
	config: `server: { shutdown_grace_s: 0 }
default_provider: main
${providersAt({ main: model.url, other: model.url, held: held.url, nobody })}
  single: { kind: openai, base_url: '${held.url}', api_key: sk-test, model: single-model, max_concurrent_calls: 1 }
  offline: { kind: offline }
`,
})
t.teardown(async () => {
	await gateway.stop()
	await model.stop()
	await held.stop()
})

void t.test('a run alternates between model and tools until an answer calls no tool', async (t) => {
	const usage = { prompt_tokens: 100, completion_tokens: 20 }
	model.on(
		'paint it',
		{ tools: [{ name: 'memory_stm_write', arguments: { key: 'colour', value: 'blue' }, id: 'c1' }], usage },
		{
			text: 'Let me check.',
			tools: [
				{ name: 'memory_stm_read', arguments: { key: 'colour' }, id: 'c2' },
				{ name: 'memory_stm_read', arguments: { key: 'shape' }, id: 'c3' },
			],
			usage,
		},
		{ text: 'It is blue.', usage },
	)
	const ada = await follow(t, gateway, 'painter', { persona: 'You paint.', config: { max_tokens: 99 } })
	const run_id = await ada.complete('Please paint it.')
	t.strictSame(ada.typesOf(run_id), [
		'run.started',
		'message.system',
		'message.user',
		'model.request',
		'model.response',
		'primitive.called',
		'primitive.result',
		'model.request',
		'model.response',
		'message.assistant',
		'primitive.called',
		'primitive.result',
		'primitive.called',
		'primitive.result',
		'model.request',
		'model.response',
		'message.assistant',
		'run.completed',
	])
	const responses = ada.eventsOf(run_id).filter((event) => event.event_type === 'model.response')
	t.match(responses[0]?.payload, {
		provider: 'main',
		finish_reason: 'tool_calls',
		usage: { input_tokens: 100, output_tokens: 20 },
		tool_calls: ['memory.stm_write'],
	})
	t.strictSame(responses[1]?.payload.tool_calls, ['memory.stm_read', 'memory.stm_read'])
	const results = ada.eventsOf(run_id).filter((event) => event.event_type === 'primitive.result')
	t.strictSame(
		results.map((event) => JSON.parse(String(event.payload.result))),
		[
			{ key: 'colour', notes: 1 },
			{ key: 'colour', value: 'blue' },
			{ key: 'shape', value: null },
		],
	)
	t.match(await ada.read(run_id), { answer: 'It is blue.', usage: { input_tokens: 300, output_tokens: 60 } })

	const requests = model.requests('paint it')
	t.equal(requests.length, 3)
	t.match(requests[0], { model: 'main-model', max_tokens: 99, messages: [{ role: 'system' }, { role: 'user' }] })
	const names = requests[0]?.tools?.map((tool) => tool.function.name)
	t.strictSame(names?.toSorted(), [
		'ask',
		'conversation_read',
		'conversation_search',
		'conversation_send_file',
		'heartbeat_create',
		'heartbeat_delete',
		'heartbeat_list',
		'heartbeat_update',
		'memory_forget',
		'memory_recall',
		'memory_stm_read',
		'memory_stm_write',
		'memory_store',
		'profile_read',
		'profile_write',
		'subagent_spawn',
		'vault_read',
		'webhook_register',
		'webhook_rotate',
	])
	t.match(withoutAdditions(requests[2]?.messages ?? []).slice(2), [
		{ role: 'assistant', tool_calls: [{ id: 'c1' }] },
		{ role: 'tool', tool_call_id: 'c1', content: '{"key":"colour","notes":1}' },
		{ role: 'assistant', content: 'Let me check.', tool_calls: [{ id: 'c2' }, { id: 'c3' }] },
		{ role: 'tool', tool_call_id: 'c2' },
		{ role: 'tool', tool_call_id: 'c3' },
	])
})

void t.test('invalid tool calls are reported to the model, and do not reach the tool', async (t) => {
	model.on(
		'confuse',
		{ tools: [{ name: 'no_such_tool', arguments: {} }] },
		{ tools: [{ name: 'memory_stm_write', arguments: '{"key":"a","value":' }] },
		{ tools: [{ name: 'memory_stm_write', arguments: { key: 7, value: 1, more: true } }] },
		'I give up.',
	)
	const ada = await follow(t, gateway, 'confused')
	const run_id = await ada.complete('confuse')
	const failed = ada.eventsOf(run_id).filter((event) => event.event_type === 'primitive.failed')
	t.strictSame(
		failed.map((event) => [event.payload.primitive, event.payload.code]),
		[
			['no_such_tool', 'tool_unknown'],
			['memory.stm_write', 'invalid_arguments'],
			['memory.stm_write', 'invalid_arguments'],
		],
	)
	const results = model
		.requests('confuse')
		.at(-1)
		?.messages.filter((message) => message.role === 'tool')
	t.match(results, [
		{ content: /there is no tool/ },
		{ content: /not JSON/ },
		{ content: /key.*must be a string.*more.*is not allowed/ },
	])
})

void t.test('a run that exceeds its limit of steps fails, and one that just fits completes', async (t) => {
	const prompt = ['a', 'b', 'c'].map((key) => `/tool memory.stm_read {"key":"${key}"}`).join('\n')
	const ada = await follow(t, gateway, 'stepper', { config: { provider: 'offline', limits: { steps: 3 } } })
	const run_id = await ada.start(prompt)
	const failed = await ada.ended(run_id)
	t.equal(failed.event_type, 'run.failed')
	t.match(failed.payload, { code: 'limit_steps', error: /limit is 3; raise config\.limits\.steps/ })
	t.equal(ada.typesOf(run_id).filter((type) => type === 'model.request').length, 3)
	const { error, status, answer, ended_at } = await ada.read(run_id)
	t.strictSame(
		{ error, status, answer },
		{
			error: { code: 'limit_steps', message: failed.payload.error },
			status: 'failed',
			answer: null,
		},
	)
	t.match(ended_at, /Z$/)

	await gateway.request('PATCH', '/v1/agents/stepper', { body: { config: { limits: { steps: 4 } } } })
	await ada.complete(prompt)
})

void t.test('a run that has used its tokens gets one last call without tools', async (t) => {
	const usage = { prompt_tokens: 60, completion_tokens: 50 }
	model.on(
		'expensive',
		{ tools: [{ name: 'memory_stm_read', arguments: {} }], usage },
		{ text: 'So far so good.', usage },
	)
	model.on('last word', { text: 'Done.', usage })
	const ada = await follow(t, gateway, 'spender', { config: { limits: { tokens: 100 } } })
	const run_id = await ada.complete('expensive')
	t.match((await ada.ended(run_id)).payload, { finish_reason: 'limit_tokens' })
	const [first, second, ...more] = model.requests('expensive')
	t.ok(first?.tools && first.tools.length > 0)
	t.strictSame([second?.tools ?? [], more], [[], []])
	t.match(second?.messages.at(-1)?.content, /This is the last call: this run has used its 100 tokens/)
	t.match((await ada.waitFor(run_id, 'message.remark')).payload, { about: 'limit_tokens' })
	t.match(await ada.read(run_id), {
		status: 'completed',
		answer: 'So far so good.',
		finish_reason: 'limit_tokens',
		usage: { input_tokens: 120, output_tokens: 100 },
	})
	t.match(
		await ada.read(await ada.complete('last word')),
		{ answer: 'Done.' },
		'an answer that exceeds the limit is kept',
	)
})

void t.test('a run that exceeds its wall time fails, and its model call is aborted', async (t) => {
	const ada = await follow(t, gateway, 'slow', { config: { provider: 'held', limits: { wall_time_s: 3 } } })
	const run_id = await ada.start('Take your time.')
	const call = await held.called('Take your time.')
	const failed = await ada.ended(run_id)
	t.match(failed.payload, { code: 'limit_wall_time', error: /limit of 3 s; raise config\.limits\.wall_time_s/ })
	await call.hungUp
	t.match(await ada.read(run_id), { status: 'failed', answer: null, error: { code: 'limit_wall_time' } })
})

/** How much longer than its wall time the gateway waits for a run, as in core/runs/run-pool.ts. */
const GRACE_MS = 2_000

/** A tool that ends only when it is aborted. */
const sloth = `export default {
	name: 'sloth',
	start(ctx) {
		const run = (args, call) => new Promise((resolve, reject) => {
			call.signal.addEventListener('abort', () => {
				void ctx.emit({ event_type: 'sloth.aborted', payload: { key: call.key } })
				reject(new Error('aborted'))
			})
		})
		ctx.primitive({ name: 'sloth.sleep', description: 'Sleeps.', run })
	},
}`

void t.test('a tool that is still running at the limit of wall time is aborted', async (t) => {
	const own = await startGateway({ config: 'plugins:\n  sloth: true\n', files: { 'plugins/sloth/index.js': sloth } })
	t.teardown(() => own.stop())
	const stream = await openStream(own.url, { query: { event_type: 'sloth.aborted' } })
	t.teardown(() => stream.close())
	const wall_time_s = 3_003
	const deadlines = watchDeadlines(t, wall_time_s * 1_000 + GRACE_MS)
	const ada = await follow(t, own, 'sleepy', { config: { limits: { wall_time_s } } })
	const run_id = await ada.start('/tool sloth.sleep {}')
	await ada.waitFor(run_id, 'primitive.called')
	deadlines.expire()
	t.match((await ada.ended(run_id)).payload, { code: 'limit_wall_time' })
	t.match((await stream.waitFor('sloth.aborted')).payload.key, run_id)
	t.equal(ada.typesOf(run_id).at(-1), 'run.failed')
})

void t.test('a failing model fails the run with the message of the server', async (t) => {
	model.on('rejects', { status: 401, message: 'the key is no good' })
	model.on('unknown model', { status: 404, message: 'no such model' })
	model.on('breaks', { status: 500, message: 'on fire' })
	model.on('limits', { status: 429, message: 'slow down', retryAfter: 0 })
	model.on('mumbles', { malformed: true })
	model.on('hangs up', { text: 'This answer is never heard to its end.', cutAfterChunks: 3, chunkSize: 5, pauseMs: 10 })
	const cases = [
		['rejects', 'model_rejected', /main.*the key is no good/, 0, 'main'],
		['unknown model', 'model_rejected', /no such model/, 0, 'main'],
		['breaks', 'model_unavailable', /on fire/, 3, 'main'],
		['limits', 'model_rate_limited', /slow down/, 3, 'main'],
		['mumbles', 'model_malformed', /main/, null, 'main'],
		['hangs up', 'model_interrupted', /broke off|ended before/, 3, 'main'],
		['is not there', 'model_unavailable', /nobody/, 3, 'nobody'],
	] as const
	// In parallel, since the gateway waits before each retry.
	await Promise.all(
		cases.map(async ([prompt, code, message, retries, provider]) => {
			const name = prompt.replaceAll(' ', '-')
			const ada = await follow(t, gateway, name, { config: { provider } })
			const run_id = await ada.start(prompt)
			const failed = await ada.ended(run_id)
			t.match(failed.payload, { code, error: message, usage: { input_tokens: 0, output_tokens: 0 } }, prompt)
			const types = ada.typesOf(run_id)
			t.notOk(types.includes('message.assistant'), prompt)
			t.equal(types.at(-1), 'run.failed', prompt)
			const retried = ada.eventsOf(run_id).filter((event) => event.event_type === 'model.retry')
			if (retries !== null) t.equal(retried.length, retries, prompt)
			for (const { payload } of retried) t.match(payload, { provider, code, delay_ms: Number, attempt: Number }, prompt)
			t.match(await ada.read(run_id), { status: 'failed', answer: null, error: { code, message } }, prompt)
			t.match((await ada.call('history')).body, [{ role: 'user', content: prompt }], prompt)
			t.notMatch(JSON.stringify(ada.stream.events), /sk-test/, 'no event contains the key')
		}),
	)
})

void t.test('a failed model call is retried, and nothing of the interrupted answer remains', async (t) => {
	model.on(
		'stutters',
		{ text: 'This is the WRONG answer, it breaks off.', cutAfterChunks: 3, chunkSize: 8, pauseMs: 10 },
		{ status: 503, message: 'busy' },
		'The right answer.',
	)
	const ada = await follow(t, gateway, 'patient')
	const run_id = await ada.complete('stutters')
	t.strictSame(ada.typesOf(run_id), [
		'run.started',
		'message.user',
		'model.request',
		'model.retry',
		'model.retry',
		'model.response',
		'message.assistant',
		'run.completed',
	])
	t.equal((await ada.read(run_id)).answer, 'The right answer.')
	t.notMatch(JSON.stringify(ada.eventsOf(run_id)), /WRONG/)
})

void t.test('a fallback provider of the agent answers if the first one fails', async (t) => {
	model.on('who', { status: 401, message: 'not you' }, 'The other one.')
	const ada = await follow(t, gateway, 'backed', {
		config: { model: 'only-at-main', fallback: ['other', 'offline'] },
	})
	const run_id = await ada.complete('who')
	const fallback = await ada.waitFor(run_id, 'model.fallback')
	t.match(fallback.payload, { from: 'main', to: 'other', code: 'model_rejected', message: /not you/ })
	t.match((await ada.waitFor(run_id, 'model.response')).payload, { provider: 'other', model: String })
	t.match(await ada.read(run_id), { status: 'completed', answer: 'The other one.' })
	t.strictSame(
		model.requests('who').map((request) => request.model),
		['only-at-main', 'other-model'],
		"the agent's model applies only to its own provider",
	)

	model.on('anybody', { status: 401, message: 'none of you' })
	const last = await ada.complete('anybody')
	t.equal(ada.typesOf(last).filter((type) => type === 'model.fallback').length, 4, 'two in each of two calls')
	t.match((await ada.waitFor(last, 'model.response')).payload, { provider: 'offline' })
})

void t.test('an unknown provider fails the run, and the error names the setting', async (t) => {
	for (const [name, config, message] of [
		[
			'astray',
			{ provider: 'nowhere' },
			/no provider "nowhere"; add it under providers in gateway\.yaml, or use one of: main/,
		],
		['half-astray', { fallback: ['nowhere'] }, /no provider "nowhere"/],
		['odd', { provider: 'constructor' }, /no provider "constructor"/],
	] as const) {
		const ada = await follow(t, gateway, name, { config })
		const run_id = await ada.start('Hello.')
		t.match((await ada.ended(run_id)).payload, { code: 'provider_unknown', error: message }, name)
		t.match(await ada.read(run_id), { status: 'failed', error: { code: 'provider_unknown' } }, name)
	}
})

void t.test('if no provider is set up, the offline one answers, with model.fallback', async (t) => {
	const bare = await startGateway()
	t.teardown(() => bare.stop())
	const ada = await follow(t, bare, 'ada', { config: { provider: 'openai', model: 'gpt-4o' } })
	const run_id = await ada.complete('Hello.')
	t.match((await ada.waitFor(run_id, 'model.fallback')).payload, {
		from: 'openai',
		to: 'offline',
		code: 'provider_unknown',
		message: /no provider is set up in gateway\.yaml/,
	})
	t.match((await ada.waitFor(run_id, 'model.response')).payload, { provider: 'offline' })
	t.match(await ada.read(run_id), { status: 'completed', answer: /Hello\./ })
})

void t.test('a run that waited for a thread reports the missing provider, too', async (t) => {
	const narrow = await startGateway({ config: 'workers: {threads: 1, runs_per_thread: 1}\n' })
	t.teardown(() => narrow.stop())
	const config = { provider: 'openai', model: 'gpt-4o' }
	const all = await Promise.all(['ada', 'bob', 'eve'].map((name) => follow(t, narrow, name, { config })))
	const runs = await Promise.all(all.map(async (agent) => ({ agent, run_id: await agent.start('Hello.') })))
	for (const { agent, run_id } of runs) {
		await agent.ended(run_id)
		t.equal(agent.typesOf(run_id).filter((type) => type === 'model.fallback').length, 1)
	}
})

void t.test('max_concurrent_calls limits the calls of a provider, and agents take turns', async (t) => {
	const config = { provider: 'single' }
	const [ada, bob, eve] = [
		await follow(t, gateway, 'crowd', { config }),
		await follow(t, gateway, 'guest', { config }),
		await follow(t, gateway, 'leaver', { config }),
	]
	const start = async ({ call }: typeof ada, prompt: string): Promise<string> =>
		(await call('runs', { prompt, conversation: prompt })).body.run_id
	const ids = [await start(ada, 'crowd 1')]
	let open = await held.called('crowd 1')
	for (const prompt of ['crowd 2', 'crowd 3', 'crowd 4']) {
		const run_id = await start(ada, prompt)
		await ada.waitFor(run_id, 'model.queued')
		ids.push(run_id)
	}
	const guest = await start(bob, 'guest 1')
	t.match((await bob.waitFor(guest, 'model.queued')).payload, { provider: 'single', model: 'single-model' })
	const left = await start(eve, 'leaver 1')
	await eve.waitFor(left, 'model.queued')
	t.match(await eve.call('stop', {}), { status: 200 })
	t.equal((await eve.ended(left)).event_type, 'run.stopped')
	t.notOk(eve.typesOf(left).includes('model.request'))
	for (const next of ['crowd 2', 'guest 1', 'crowd 3', 'crowd 4']) {
		t.ok(open.open)
		open.answer('done')
		open = await held.called(next)
	}
	open.answer('done')
	for (const run_id of ids.slice(1)) t.equal((await ada.ended(run_id)).event_type, 'run.completed')
	t.equal((await bob.ended(guest)).event_type, 'run.completed')
	t.strictSame(
		held.calls.flatMap(({ prompt }) => (/^(crowd|guest|leaver) /.test(prompt) ? prompt : [])),
		['crowd 1', 'crowd 2', 'guest 1', 'crowd 3', 'crowd 4'],
	)
})

void t.test('limits in gateway.yaml apply to agents that set none', async (t) => {
	const own = await startGateway({ config: 'runs:\n  limits:\n    steps: 2\n' })
	t.teardown(() => own.stop())
	const ada = await follow(t, own, 'ada')
	await ada.complete('Hello.')
	const twice = '/tool memory.stm_read {}\n/tool memory.stm_read {}'
	const run_id = await ada.start(twice)
	t.match((await ada.ended(run_id)).payload, { code: 'limit_steps' })
	const bob = await follow(t, own, 'bob', { config: { limits: { steps: 3 } } })
	await bob.complete(twice)
})
