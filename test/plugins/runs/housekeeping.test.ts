import t from 'tap'
import type { Context } from '../../../core/plugin.ts'
import type { RunSettings } from '../../../plugins/runs/contract.ts'
import { tidy } from '../../../plugins/runs/housekeeping.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { openStream } from '../../support/sse.ts'

const DAY_MS = 24 * 3600 * 1000
const world = globalThis as { lent?: Context }

/** A gateway, and the context of a plugin in it that lends it to the test. */
async function start(): Promise<{ gateway: TestGateway; ctx: Context<RunSettings> }> {
	const gateway = await startGateway({
		config: 'plugins:\n  lender: true\n',
		files: {
			'plugins/lender/index.js': "export default { name: 'lender', start: (ctx) => { globalThis.lent = ctx } }",
		},
	})
	const limits = { steps: 50, tokens: 1_000, wall_time_s: 60 }
	const config: RunSettings = { limits, max_waiting: 10, question_ttl_days: 7, retention_days: 30 }
	return { gateway, ctx: { ...(world.lent as Context), config } }
}

void t.test('forgets ended runs after their time, and keeps those that go on', async (t) => {
	const { gateway, ctx } = await start()
	t.teardown(() => gateway.stop())
	const stream = await openStream(gateway.url)
	t.teardown(() => stream.close())
	await gateway.request('POST', '/v1/agents', { body: { name: 'a' } })
	const ended = await gateway.request('POST', '/v1/agents/a/runs', {
		body: { prompt: 'hello' },
		headers: { 'idempotency-key': 'k' },
	})
	await stream.waitFor('run.completed')
	const paused = await gateway.request('POST', '/v1/agents/a/runs', { body: { prompt: '/tool ask {"question": "?"}' } })
	await stream.waitFor('run.paused')

	const patient = { ...ctx, config: { ...ctx.config, question_ttl_days: 365 } }
	await tidy(patient, Date.now() + 29 * DAY_MS)
	t.equal((await gateway.request('GET', `/v1/runs/${ended.body.run_id}`)).status, 200, 'not yet')

	await tidy(patient, Date.now() + 31 * DAY_MS)
	t.equal((await gateway.request('GET', `/v1/runs/${ended.body.run_id}`)).status, 404)
	t.match(
		(await gateway.request('GET', '/v1/agents/a/runs')).body.map((run: { run_id: string }) => run.run_id),
		[paused.body.run_id],
	)
	const again = await gateway.request('POST', '/v1/agents/a/runs', {
		body: { prompt: 'other' },
		headers: { 'idempotency-key': 'k' },
	})
	t.equal(again.status, 200, 'its idempotency key is free again')
})

void t.test('a question that nobody answers fails its run, and the next of the conversation goes on', async (t) => {
	const { gateway, ctx } = await start()
	t.teardown(() => gateway.stop())
	const stream = await openStream(gateway.url)
	t.teardown(() => stream.close())
	await gateway.request('POST', '/v1/agents', { body: { name: 'a' } })
	const asking = await gateway.request('POST', '/v1/agents/a/runs', { body: { prompt: '/tool ask {"question": "?"}' } })
	const next = await gateway.request('POST', '/v1/agents/a/runs', { body: { prompt: 'hello' } })
	const { payload } = await stream.waitFor('question.asked')
	await stream.waitFor('run.paused')
	await tidy(ctx, Date.now() + 8 * DAY_MS)
	t.match(await stream.waitFor('run.failed'), { run_id: asking.body.run_id, payload: { code: 'question_expired' } })
	t.match(await stream.waitFor('run.completed'), { run_id: next.body.run_id })
	t.match((await gateway.request('GET', `/v1/runs/${asking.body.run_id}`)).body, {
		status: 'failed',
		error: { code: 'question_expired' },
		question: null,
	})
	const late = await gateway.request('POST', `/v1/agents/a/ask-responses/${payload.question_id}`, {
		body: { answer: 'late' },
	})
	t.match(late, { status: 409, body: { code: 'conflict' } })
})
