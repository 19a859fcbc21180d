/** Usage of models: tokens, cost, the report, and the usage of deleted agents. */
import t from 'tap'
import { addToken } from '../../support/add.ts'
import { svcFor } from '../../support/cli.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { startModelServer } from '../../support/model-server.ts'
import { roomInDay } from '../../support/day.ts'
import { assertError } from '../../support/error-response.ts'
import { follow } from '../../support/runs.ts'
import { chatCompletion, startScriptedModels } from '../../support/scripted-model.ts'
import type { ScriptedReply } from '../../support/scripted-model.ts'

await roomInDay()
const model = await startModelServer()
const scripted = await startScriptedModels()
const held = await startManualModel()
let reply: ScriptedReply = { json: {} }
/** Returns `reply`. */
const odd = scripted.add(() => reply)
const gateway = await startGateway({
	config: `
providers:
  mock:
    kind: openai
    base_url: ${model.url}
    model: m
    prices:
      m: {input: 2.5, cached_input: 0.25, output: 10}
      fine: {input: 0.1000000123, output: 0.2}
      constructor: {input: 1, output: 1}
  odd: {kind: openai, base_url: '${odd.url}', model: o, prices: {o: {input: 1, output: 1}}}
  held: {kind: openai, base_url: '${held.url}', model: h, prices: {h: {input: 1, output: 1}}}
default_provider: mock
`,
})
t.teardown(() => gateway.stop())
t.teardown(() => model.stop())
t.teardown(() => scripted.stop())
t.teardown(() => held.stop())

const usageOf = async (query: string): Promise<Answer> => {
	const { status, body } = await gateway.request('GET', `/v1/usage?${query}`)
	t.equal(status, 200)
	return body
}
const answer = (prompt_tokens: number, completion_tokens: number) => ({
	text: 'Done.',
	usage: { prompt_tokens, completion_tokens },
})

void t.test('a call of a model with a price has a cost in its step, its run and the report', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const usage = { prompt_tokens: 1000, completion_tokens: 100 }
	const tools = [{ name: 'memory_stm_read', arguments: {} }]
	model.on('two calls', { tools, usage }, answer(3000, 50))
	const run_id = await ada.complete('two calls')

	const { body } = await gateway.request('GET', `/v1/runs/${run_id}/steps`)
	const costs = body.steps.map((step: Answer) => step.usage?.cost)
	t.strictSame(costs, [0.0035, undefined, 0.008])
	t.strictSame((await ada.read(run_id)).usage, { input_tokens: 4000, output_tokens: 150, cost: 0.0115 })
	const counted = {
		calls: 2,
		input_tokens: 4000,
		output_tokens: 150,
		cached_tokens: 0,
		reasoning_tokens: 0,
		cost: 0.0115,
		unpriced_tokens: 0,
	}
	const today = new Date().toISOString().slice(0, 10)
	const { runs, ...rest } = (await usageOf('agent_id=ada')).rows[0]
	t.strictSame(rest, { agent_id: 'ada', ...counted })
	t.match(runs, { completed: 1, failed: 0, p50_s: Number, p95_s: Number })
	t.strictSame((await usageOf('agent_id=ada&by=model')).rows, [{ provider: 'mock', model: 'm', ...counted }])
	t.strictSame((await usageOf('agent_id=ada&by=day')).rows, [{ day: today, ...counted, runs }])
	t.strictSame((await usageOf('agent_id=ada')).total, { ...counted, runs })

	const svc = svcFor(gateway)
	t.match((await svc(['runs', 'show', run_id])).stdout, /cost: +0\.0115\n[^]*finish reason: +stop/)
	t.match((await svc(['runs', 'steps', run_id])).stdout, /1000 in, 100 out +0\.0035/)
	t.match((await svc(['usage', '--since', '24h', '--until', '0s'])).stdout, /ada +1 +0 +2 /)
	t.match((await svc(['usage', 'ada', '--by', 'model'])).stdout, /mock \(m\) +- +- +2 +4000 +0 +150 +0\.0115/)
})

void t.test('a call without a price has no cost, and the report states its tokens', async (t) => {
	const bob = await follow(t, gateway, 'bob', { config: { model: 'unknown' } })
	model.on('no price', answer(700, 7))
	const run_id = await bob.complete('no price')
	t.strictSame((await bob.read(run_id)).usage, { input_tokens: 700, output_tokens: 7 })
	t.match((await usageOf('agent_id=bob')).total, { calls: 1, cost: null, unpriced_tokens: 707 })
	await gateway.request('PATCH', '/v1/agents/bob', { body: { config: { model: 'm' } } })
	await bob.complete('no price')
	t.match((await usageOf('agent_id=bob')).total, { calls: 2, cost: 0.00182, unpriced_tokens: 707 })
	await gateway.request('PATCH', '/v1/agents/bob', { body: { config: { model: 'toString' } } })
	await bob.complete('no price')
	t.match((await usageOf('agent_id=bob')).total, { calls: 3, cost: 0.00182, unpriced_tokens: 1414 })
})

void t.test('the offline model is free, so its tokens are not unpriced', async (t) => {
	const off = await startGateway()
	t.teardown(() => off.stop())
	const ada = await follow(t, off, 'ada')
	const run_id = await ada.complete('hello')
	const { body } = await off.request('GET', '/v1/usage')
	t.match(body.total, { cost: 0, unpriced_tokens: 0 })
	t.ok(body.total.input_tokens > 0)
	t.match((await svcFor(off)(['usage'])).stdout, /total +1 +0 +\d+ +\d+ +0 +\d+ +0 *(-|\n)/)
	t.notOk('cost' in (await ada.read(run_id)).usage)
})

void t.test('completed and failed runs are counted once, stopped runs are not', async (t) => {
	const kim = await follow(t, gateway, 'kim')
	model.on('fine now', answer(1, 1))
	model.on('refused now', { status: 400, message: 'no such parameter' })
	for (const prompt of ['asks now', 'asks again'])
		model.on(prompt, { tools: [{ name: 'ask', arguments: { question: 'Which?' } }] }, answer(1, 1))
	await kim.complete('fine now')
	const failed = await kim.start('refused now')
	await kim.waitFor(failed, 'run.failed')
	const stopped = await kim.start('asks now')
	await kim.waitFor(stopped, 'question.asked')
	t.equal((await gateway.request('POST', `/v1/runs/${stopped}/cancel`)).status, 200)
	await kim.waitFor(stopped, 'run.stopped')
	const asked = await kim.start('asks again')
	const { payload } = await kim.waitFor(asked, 'question.asked')
	await gateway.request('POST', `/v1/agents/kim/ask-responses/${payload.question_id}`, { body: { answer: 'This.' } })
	await kim.waitFor(asked, 'run.completed')
	const { total, rows } = await usageOf('agent_id=kim')
	t.match(total.runs, { completed: 2, failed: 1 })
	t.match(rows[0].runs, { completed: 2, failed: 1 })
	t.ok(total.runs.p50_s <= total.runs.p95_s)
})

void t.test('costs add up without a visible rounding error', async (t) => {
	const cid = await follow(t, gateway, 'cid', { config: { model: 'fine' } })
	const tools = [{ name: 'memory_stm_write', arguments: { key: 'a', value: 1 } }]
	const usage = { prompt_tokens: 3, completion_tokens: 1 }
	const calls = Array.from({ length: 30 }, (_, n) => {
		return { tools: [{ ...tools[0]!, arguments: { key: 'a', value: n } }], usage }
	})
	model.on('often', ...calls, { text: 'Done.', usage })
	const run_id = await cid.complete('often')
	// 3 × 0.1000000123 and 1 × 0.2 per million tokens make 0.0000005 and a fraction, rounded to billionths.
	t.equal((await cid.read(run_id)).usage.cost, 0.0000155)
	t.equal((await usageOf('agent_id=cid')).total.cost, 0.0000155)
})

void t.test('calls with an empty answer are counted', async (t) => {
	const dan = await follow(t, gateway, 'dan')
	const usage = { prompt_tokens: 10, completion_tokens: 1 }
	model.on(/nothing|your answer was empty/, { text: '', usage })
	const run_id = await dan.start('nothing')
	t.match(await dan.ended(run_id), { event_type: 'run.failed', payload: { code: 'model_empty' } })
	t.match((await usageOf('agent_id=dan')).total, { calls: 3, input_tokens: 30, output_tokens: 3, cost: 0.000105 })
	t.match((await dan.read(run_id)).usage, { input_tokens: 30, output_tokens: 3, cost: 0.000105 })
})

void t.test('calls that failed after the model answered are counted, before a fallback too', async (t) => {
	const zoe = await follow(t, gateway, 'zoe', { config: { provider: 'odd' } })
	const usage = { prompt_tokens: 10, completion_tokens: 1 }
	const broken = (finish_reason: string): ScriptedReply => {
		const call = { id: 'c', function: { name: 'memory_stm_read', arguments: '{"ke' } }
		return chatCompletion({ tool_calls: [call] }, finish_reason, usage)
	}
	reply = broken('length')
	const cut = await zoe.start('cut off in a call')
	t.match(await zoe.ended(cut), { event_type: 'run.failed', payload: { code: 'model_interrupted' } })
	t.match((await zoe.read(cut)).usage, { input_tokens: 10, output_tokens: 1, cost: 0.000011 })
	t.match((await usageOf('agent_id=zoe')).total, { calls: 1, input_tokens: 10, output_tokens: 1, cost: 0.000011 })

	const yan = await follow(t, gateway, 'yan', { config: { provider: 'odd', fallback: ['mock'] } })
	model.on('cut off, then elsewhere', answer(100, 20))
	const { usage: both } = await yan.read(await yan.complete('cut off, then elsewhere'))
	t.match(both, { input_tokens: 110, output_tokens: 21, cost: 0.000461 })
	t.match((await usageOf('agent_id=yan')).total, { calls: 2, input_tokens: 110, output_tokens: 21, cost: 0.000461 })
})

void t.test('calls that were stopped while the model answered are counted by an estimate', async (t) => {
	const pia = await follow(t, gateway, 'pia', { config: { provider: 'held', limits: { tokens_per_day: 100 } } })
	const run_id = await pia.start('stop me')
	;(await held.called('stop me')).say('this is a long answer')
	await pia.stream.waitFor(
		({ event_type, payload }) => event_type === 'model.stream' && /long/.test(String(payload.content)),
	)
	await pia.call('stop', {})
	const { event_type, payload } = await pia.ended(run_id)
	t.equal(event_type, 'run.stopped')
	const { usage } = payload as { usage: { input_tokens: number; output_tokens: number; cost: number } }
	t.ok(usage.input_tokens > 100)
	t.equal(usage.output_tokens, Math.ceil('Well, this is a long answer'.length / 4))
	t.equal(usage.cost, (usage.input_tokens + usage.output_tokens) / 1e6)
	t.strictSame((await pia.read(run_id)).usage, usage)
	t.match((await usageOf('agent_id=pia')).total, { calls: 1, ...usage })
	t.match(
		await pia.ended(await pia.start('once more')),
		{ payload: { code: 'limit_tokens' } },
		'the limit includes the estimate',
	)
})

void t.test('implausible usage from a provider is replaced by an estimate', async (t) => {
	const eve = await follow(t, gateway, 'eve', { config: { provider: 'odd' } })
	const message = { role: 'assistant', content: 'x'.repeat(40) }
	const usageAfter = async (usage: string): Promise<Answer> => {
		const choice = JSON.stringify({ index: 0, message, finish_reason: 'stop' })
		reply = { text: `{"choices":[${choice}],"usage":${usage}}`, type: 'application/json' }
		return (await eve.read(await eve.complete('hello'))).usage
	}
	const implausible = [
		'{"prompt_tokens":-5,"completion_tokens":-5}',
		'{"prompt_tokens":1e300,"completion_tokens":1e300}',
		'{"prompt_tokens":1e999,"completion_tokens":1}',
		'{"prompt_tokens":"NaN","completion_tokens":null}',
		'null',
	]
	for (const usage of implausible) {
		const { input_tokens, output_tokens, cost } = await usageAfter(usage)
		t.equal(output_tokens, 10, usage)
		t.ok(input_tokens > 100 && input_tokens < 100_000, usage)
		t.equal(cost, Math.round((input_tokens + output_tokens) * 1000) / 1e9, usage)
	}
	t.strictSame(await usageAfter('{"prompt_tokens":1.5,"completion_tokens":0.2}'), {
		input_tokens: 2,
		output_tokens: 1,
		cost: 0.000003,
	})
	const cached = '{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":500}}'
	t.match(await usageAfter(cached), { input_tokens: 10, cost: 0.000011 })
})

void t.test('usage remains after the deletion of its agent', async (t) => {
	const fay = await follow(t, gateway, 'fay')
	model.on('before the end', answer(1000, 100))
	await fay.complete('before the end')
	const before = await usageOf('by=day')
	await gateway.request('DELETE', '/v1/agents/fay')
	t.strictSame(await usageOf('by=day'), before)
	t.match((await usageOf('agent_id=fay')).rows, [{ agent_id: 'fay', calls: 1, cost: 0.0035 }])
	const again = await follow(t, gateway, 'fay')
	await again.complete('before the end')
	t.match((await usageOf('agent_id=fay')).rows, [{ agent_id: 'fay', calls: 2, cost: 0.007 }])
})

void t.test('the report rejects invalid queries', async (t) => {
	assertError(t, await gateway.request('GET', '/v1/usage?agent_id=nobody'), { status: 404, code: 'not_found' })
	for (const query of ['by=hour', 'since=yesterday', 'since=2026-02-02&until=2026-01-01', 'since=%2B200000-01-01'])
		assertError(t, await gateway.request('GET', `/v1/usage?${query}`), { status: 400, code: 'invalid_request' })
	t.match(await usageOf('since=2020-01-01T12:00:00Z&until=2020-01-03'), {
		since: '2020-01-01',
		until: '2020-01-03',
		rows: [],
		total: { calls: 0, cost: null },
	})
	t.match(await usageOf('since=2020-01-01&until=2020-01-03T00:00:01Z'), { until: '2020-01-04' })
	const { token } = await addToken(gateway, ['events:read'])
	assertError(t, await gateway.request('GET', '/v1/usage', { token }), { status: 403, code: 'forbidden' })
})
