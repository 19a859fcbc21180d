/** Daily limits of an agent and of the gateway. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { roomInDay } from '../../support/day.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Answer, TestGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { startModelServer } from '../../support/model-server.ts'
import { follow } from '../../support/runs.ts'
import type { Followed } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'

const DAY_MS = 24 * 3_600_000
await roomInDay()
const model = await startModelServer()
const held = await startManualModel()
t.teardown(() => model.stop())
t.teardown(() => held.stop())
const usage = { prompt_tokens: 60, completion_tokens: 5 }
model.on('hello', { text: 'Hello.', usage })

const configWith = (more: string): string => `
providers:
  mock: {kind: openai, base_url: '${model.url}', model: m, prices: {m: {input: 1000, output: 1000}}}
  held: {kind: openai, base_url: '${held.url}', model: h, prices: {h: {input: 1000, output: 1000}}}
default_provider: mock
plugins: {openai-api: true}
${more}`

async function start(t: Test, more = ''): Promise<TestGateway> {
	const gateway = await startGateway({ config: configWith(more) })
	t.teardown(() => gateway.stop())
	return gateway
}

/** The error of a run that must fail without a request to its model. */
async function failure(agent: Followed, prompt: string): Promise<Answer> {
	const before = model.requests().length
	const run_id = await agent.start(prompt)
	const { event_type, payload } = await agent.ended(run_id)
	t.equal(event_type, 'run.failed')
	t.equal(model.requests().length, before)
	t.notOk(agent.typesOf(run_id).includes('model.request'))
	return payload
}

void t.test('an agent that has used its daily tokens makes no call until the next day', async (t) => {
	const gateway = await start(t)
	const real = Date.now
	t.teardown(() => (Date.now = real))
	const ada = await follow(t, gateway, 'ada', { config: { limits: { tokens_per_day: 100 } } })
	const bob = await follow(t, gateway, 'bob')
	await ada.complete('hello')
	await ada.complete('hello') // 65 of 100 were used
	t.match(await failure(ada, 'hello'), {
		code: 'limit_tokens',
		error:
			/^agent "ada" has used 130 of its 100 tokens for a day \(config\.limits\.tokens_per_day\); the day ends at \d{4}-\d\d-\d\dT00:00:00Z, in (\d+ h )?\d+ min$/,
	})
	await bob.complete('hello')

	Date.now = () => real() + DAY_MS
	await ada.complete('hello')
	const { body } = await gateway.request('GET', '/v1/usage?agent_id=ada&by=day')
	t.strictSame(
		body.rows.map((row: Answer) => row.calls),
		[2, 1],
	)
	await gateway.request('PATCH', '/v1/agents/ada', { body: { config: { limits: { cost_per_day: 0.01 } } } })
	t.match(await failure(ada, 'hello'), {
		code: 'limit_cost',
		error: /^agent "ada" has spent 0\.065 of its 0\.01 for a day .*config\.limits\.cost_per_day/,
	})
})

void t.test('the limit of the gateway counts all agents, deleted ones too', async (t) => {
	const gateway = await start(t, 'usage: {limits: {cost_per_day: 0.1}}')
	const ada = await follow(t, gateway, 'ada')
	const bob = await follow(t, gateway, 'bob')
	await ada.complete('hello')
	await bob.complete('hello')
	await gateway.request('DELETE', '/v1/agents/ada')
	t.match(await failure(bob, 'hello'), {
		code: 'limit_cost',
		error: /^the gateway has spent 0\.13 of its 0\.1 for a day .*usage\.limits\.cost_per_day/,
	})
	const cid = await follow(t, gateway, 'cid', { config: { model: 'unpriced' } })
	t.match(await failure(cid, 'hello'), { code: 'limit_cost', error: /^the cost of mock \(unpriced\) is unknown/ })
})

void t.test('the last call of a run counts at once, even if the ledger takes long to read', async (t) => {
	const gateway = await start(t, 'usage: {limits: {cost_per_day: 0.05}}')
	// The gateway waits twenty times as long as a read of the ledger took before it reads the ledger again.
	for (let i = 0; i < 300; i++) await gateway.request('POST', '/v1/agents', { body: { name: `agent-${i}` } })
	const ada = await follow(t, gateway, 'ada')
	await ada.complete('hello')
	t.match(await failure(ada, 'hello'), { code: 'limit_cost', error: /^the gateway has spent 0\.065 of its 0\.05/ })
})

void t.test('concurrent runs reserve tokens before a call and release them after it', async (t) => {
	const gateway = await start(t)
	// Without tools, whose descriptions take thousands of tokens: the reservation of one call exceeds the limit, three calls do not.
	const config = { provider: 'held', tools: { deny: ['*'] }, max_tokens: 5_000, limits: { tokens_per_day: 5_000 } }
	const ada = await follow(t, gateway, 'ada', { config })
	const ask = (prompt: string): Promise<{ status: number; body: Answer }> =>
		gateway.request('POST', '/v1/chat/completions', {
			body: { model: 'svc/ada', messages: [{ role: 'user', content: prompt }] },
		})
	const first = ask('first')
	const call = await held.called('first')
	const second = await ask('second')
	t.equal(second.status, 409)
	t.match(second.body.error, {
		code: 'limit_tokens',
		message: /has used 0 of its 5000 .*runs in progress have reserved [56]\d{3}/,
	})
	call.answer('Done.')
	t.equal((await first).status, 200)

	const third = await ada.start('third')
	;(await held.called('third')).answer('Done.')
	t.match(await ada.ended(third), { event_type: 'run.completed' })
	t.equal(held.calls.length, 2)

	const stopped = await ada.start('stopped')
	await held.called('stopped')
	await gateway.request('POST', `/v1/runs/${stopped}/cancel`)
	const fourth = await ada.start('fourth')
	;(await held.called('fourth')).answer('Done.')
	t.match(await ada.ended(fourth), { event_type: 'run.completed' })
})

void t.test('eight concurrent runs exceed the limit by at most one call', async (t) => {
	const gateway = await start(t)
	const config = { max_tokens: 10, limits: { cost_per_day: 0.1 } }
	await follow(t, gateway, 'ada', { config })
	const body = { model: 'svc/ada', messages: [{ role: 'user', content: 'hello' }] }
	const replies = await Promise.all(
		Array.from({ length: 8 }, () => gateway.request('POST', '/v1/chat/completions', { body })),
	)
	const answered = replies.filter(({ status }) => status === 200).length
	t.ok(answered >= 1 && answered <= 2, `${answered} answered`)
	const { total } = (await gateway.request('GET', '/v1/usage')).body
	t.equal(total.calls, answered)
})

void t.test('a run that reaches the limit between two calls fails with its code', async (t) => {
	const gateway = await start(t)
	const ada = await follow(t, gateway, 'ada', { config: { limits: { tokens_per_day: 50 } } })
	model.on('two calls', { tools: [{ name: 'memory_stm_read', arguments: {} }], usage }, 'Done.')
	const run_id = await ada.start('two calls')
	t.match(await ada.ended(run_id), { event_type: 'run.failed', payload: { code: 'limit_tokens' } })
	t.equal(model.requests('two calls').length, 1)
	t.match((await ada.read(run_id)).usage, { input_tokens: 60, output_tokens: 5 })
})

void t.test('a limit that is set while the gateway runs counts earlier usage', async (t) => {
	const gateway = await start(t)
	const set = async (more: string): Promise<void> => {
		writeFileSync(join(gateway.home, 'config/gateway.yaml'), configWith(more))
		await gateway.running.gateway.reload()
	}
	const ada = await follow(t, gateway, 'ada')
	const eve = await follow(t, gateway, 'eve', { config: { provider: 'held' } })
	await ada.complete('hello')
	const during = await eve.start('during')
	const call = await held.called('during')
	await set('usage: {limits: {tokens_per_day: 65}}')
	t.match(await failure(ada, 'hello'), { code: 'limit_tokens', error: /has used 65 of its 65 tokens/ })
	call.answer('Done.')
	t.match(await eve.ended(during), { event_type: 'run.completed' })
	const { input_tokens, output_tokens } = (await eve.read(during)).usage
	// The new instance reads the ledger again after a delay that depends on how long a read takes.
	const used = `has used ${65 + input_tokens + output_tokens} of its 65 tokens`
	await eventually(
		() => failure(eve, 'again'),
		({ code, error }: Answer) => code === 'limit_tokens' && error.includes(used),
	)
	await set('')
	await ada.complete('hello')
})
