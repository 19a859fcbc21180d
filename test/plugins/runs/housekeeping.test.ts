import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { newId } from '../../../core/util/ids.ts'
import type { Context } from '../../../core/plugin.ts'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import type { RunSettings } from '../../../plugins/runs/contract.ts'
import { tidy } from '../../../plugins/runs/maintenance.ts'
import { keys } from '../../../plugins/runs/keys.ts'
import { makeHome, startGateway } from '../../support/gateway.ts'
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
	const limits = { steps: 50, tokens: 1_000, wall_time_s: 60, result_characters: 32_768 }
	const config: RunSettings = {
		limits,
		max_waiting: 10,
		max_waiting_per_agent: 100,
		max_waiting_total: 1000,
		question_ttl_days: 7,
		approval_ttl_s: 86_400,
		retention_days: 30,
		keep_requests: 0,
	}
	const { events } = gateway.running.gateway // a third party's plugin cannot write the log of a run
	return { gateway, ctx: { ...(world.lent as Context), events, config } }
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
	const { created_at } = (await gateway.request('GET', `/v1/runs/${paused.body.run_id}`)).body
	const { conversations } = (await gateway.request('GET', '/v1/agents/a/conversations')).body
	t.match(
		conversations,
		[{ created_at, newest_run: { run_id: paused.body.run_id } }],
		'since its oldest run that is kept',
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

/** Lets an agent write a note in a conversation. Settles when the run has ended. */
async function note(ctx: Context, name: string, conversation: string, trigger = 'api'): Promise<void> {
	const agent = await ctx.use('agents').get(name)
	const ended = Promise.withResolvers<void>()
	const stop = ctx.events.subscribe({ agent_id: name, types: ['run.completed'] }, () => ended.resolve())
	await ctx.use('runs').start(agent, { prompt: '/tool memory.stm_write {"key":"k","value":1}', trigger, conversation })
	await ended.promise
	stop()
	await ctx.use('runs').active(agent, conversation)
}

async function noted(ctx: Context, name: string): Promise<string[]> {
	const { uid } = await ctx.use('agents').get(name)
	const found: string[] = []
	for await (const { key } of ctx.store.list(keys.allShortTerm(uid)))
		found.push(key.at(-1) === uid ? 'session' : (key.at(-1) ?? ''))
	return found.toSorted()
}

void t.test('a reset forgets the notes of all conversations, a new session those of the old one', async (t) => {
	const { gateway, ctx } = await start()
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'a' } })
	const agent = await ctx.use('agents').get('a')
	const many = Array.from({ length: 120 }, (_, n) => keys.shortTerm(agent.uid, `heartbeat:${n}`))
	for (const conversation of ['channel:b', 'mcp:local:x', agent.uid]) await note(ctx, 'a', conversation)
	t.strictSame(await noted(ctx, 'a'), ['channel:b', 'mcp:local:x', 'session'])
	await ctx.use('runs').newSession(agent)
	t.strictSame(await noted(ctx, 'a'), ['channel:b', 'mcp:local:x'])
	for (const key of many) await ctx.store.put(key, { k: 1 })
	t.equal((await gateway.request('POST', '/v1/agents/a/reset')).status, 200)
	t.strictSame(await noted(ctx, 'a'), [])
})

void t.test('notes expire with their conversation', async (t) => {
	const { gateway, ctx } = await start()
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'a' } })
	const agent = await ctx.use('agents').get('a')
	await note(ctx, 'a', 'webhook:1', 'webhook')
	await note(ctx, 'a', 'subagent:1', 'subagent')
	await note(ctx, 'a', 'channel:b', 'chat_a')
	const old = await ctx.use('runs').newSession(agent)
	await ctx.use('runs').newSession(agent)
	await note(ctx, 'a', old)
	const current = await ctx.use('runs').session(agent)
	await note(ctx, 'a', current)
	// As earlier versions left them behind.
	await ctx.store.put(keys.shortTerm(agent.uid, 'heartbeat:gone'), { k: 1 })
	const { body: beat } = await gateway.request('POST', '/v1/agents/a/heartbeats', {
		body: { every: '1d', prompt: 'x' },
	})
	await ctx.store.put(keys.shortTerm(agent.uid, `heartbeat:${beat.id}`), { k: 1 })
	t.equal((await gateway.request('DELETE', `/v1/agents/a/heartbeats/${beat.id}`)).status, 200)
	t.notOk((await noted(ctx, 'a')).includes(`heartbeat:${beat.id}`), 'with its heartbeat')

	await tidy(ctx, Date.now())
	t.strictSame(await noted(ctx, 'a'), [current, 'channel:b'].toSorted())
	await tidy(ctx, Date.now() + 31 * DAY_MS)
	t.strictSame(await noted(ctx, 'a'), [current], 'with the last run of their conversation')
})

void t.test('a deletion of a conversation that a crash interrupted is finished by the next start', async (t) => {
	const home = makeHome()
	t.teardown(() => rmSync(home, { recursive: true, force: true }))
	const first = await startGateway({ home })
	const stream = await openStream(first.url)
	await first.request('POST', '/v1/agents', { body: { name: 'a' } })
	await first.request('POST', '/v1/agents/a/runs', { body: { prompt: 'said before' } })
	await stream.waitFor('run.completed')
	const open = await first.request('POST', '/v1/agents/a/runs', { body: { prompt: '/tool ask {"question": "?"}' } })
	await stream.waitFor('run.paused')
	await first.stop()

	// What the first write of a deletion leaves.
	const engine = await openLmdb({ path: join(home, 'data') })
	let uid = ''
	for await (const { value } of engine.store.list<{ uid: string }>(['agents'])) uid = value.uid
	await engine.store.put(keys.session(uid), { session_id: newId(), created_at: new Date().toISOString() })
	await engine.store.put(keys.forgetting(uid, uid), { at: new Date().toISOString() })
	await engine[Symbol.asyncDispose]()

	const second = await startGateway({ home })
	t.teardown(() => second.stop())
	t.strictSame((await second.request('GET', '/v1/agents/a/runs')).body, [])
	t.strictSame((await second.request('GET', '/v1/agents/a/questions')).body, [])
	t.equal((await second.request('GET', `/v1/runs/${open.body.run_id}`)).status, 404)
	const { body } = await second.request('GET', `/v1/audit?run_id=${open.body.run_id}`)
	t.equal(body.events[0].event_type, 'run.stopped', 'its events stay')
})
