/** kill -9 while model calls have reservations. Afterwards no counted usage is lost, and no reservation remains. */
import t from 'tap'
import { endedRun } from '../support/ended-run.ts'
import { makeHome, send, startHere } from '../support/gateway.ts'
import type { KillableGateway } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import { startModelServer } from '../support/model-server.ts'
import { spawnGateway } from '../support/process.ts'

void t.test('usage and limits are correct after a kill between the reservation and the answer', async (t) => {
	const model = await startModelServer()
	t.teardown(() => model.stop())
	const held = await startManualModel()
	t.teardown(() => held.stop())
	model.on('hello', { text: 'Hello.', usage: { prompt_tokens: 60, completion_tokens: 5 } })
	const home = makeHome({
		config: `
providers:
  mock: {kind: openai, base_url: '${model.url}', model: m, prices: {m: {input: 10, output: 10}}}
  held: {kind: openai, base_url: '${held.url}', model: h, prices: {h: {input: 10, output: 10}}}
default_provider: mock
usage: {limits: {tokens_per_day: 20000}}
`,
	})
	let gateway: KillableGateway = await spawnGateway(home)
	t.teardown(() => gateway.kill())
	const call = async (method: string, path: string, body?: unknown) => {
		const reply = await send(gateway.url + path, method, body === undefined ? {} : { body })
		if (reply.status >= 400) throw new Error(`${path}: ${JSON.stringify(reply.body)}`)
		return reply.body
	}
	const start = async (agent: string, prompt: string): Promise<string> =>
		(await call('POST', `/v1/agents/${agent}/runs`, { prompt })).run_id
	const ended = (run_id: string) => endedRun(gateway.url, run_id)

	// The gateway's limit has room for one reservation.
	await call('POST', '/v1/agents', { name: 'ada', config: { provider: 'held', max_tokens: 30_000 } })
	await call('POST', '/v1/agents', { name: 'bob' })
	t.match(await ended(await start('bob', 'hello')), { status: 'completed' })
	const cut = await start('ada', 'a long story')
	await held.called('a long story')
	t.match(await ended(await start('bob', 'hello')), { status: 'failed', error: { code: 'limit_tokens' } })
	const counted = (await call('GET', '/v1/usage')).total
	t.match(counted, { calls: 1, input_tokens: 60, output_tokens: 5 })

	await gateway.kill()
	gateway = await spawnGateway(home)
	t.strictSame((await call('GET', '/v1/usage')).total, counted)
	const repeated = await held.called('a long story', 2)
	t.match(await ended(await start('bob', 'hello')), { status: 'failed', error: { code: 'limit_tokens' } })
	repeated.answer('The end.')
	const { status, usage } = await ended(cut)
	t.equal(status, 'completed')
	const after = (await call('GET', '/v1/usage?by=agent&agent_id=ada')).total
	t.match(after, { calls: 1, input_tokens: usage.input_tokens, output_tokens: usage.output_tokens, cost: usage.cost })
	t.match(await ended(await start('bob', 'hello')), { status: 'completed' })

	// The kill follows the answer at once. The call counts once, whether the answer was stored or is requested again.
	const last = await start('ada', 'a short story')
	;(await held.called('a short story')).answer('The end.')
	await gateway.kill()
	gateway = await startHere(home)
	void held.called('a short story', 2).then(
		(call) => call.answer('The end.'),
		() => {},
	)
	const { usage: short } = await ended(last)
	const total = (await call('GET', '/v1/usage?by=agent&agent_id=ada')).total
	t.match(total, { calls: 2, input_tokens: usage.input_tokens + short.input_tokens })
	t.match(await ended(await start('bob', 'hello')), { status: 'completed' })
	await held.stop()
})
