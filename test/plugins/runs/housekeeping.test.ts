import { join } from 'node:path'
import t from 'tap'
import { newId } from '../../../core/util/ids.ts'
import type { Context } from '../../../core/plugin.ts'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import type { RunSettings } from '../../../plugins/runs/contract.ts'
import { tidy } from '../../../plugins/runs/maintenance.ts'
import { keys } from '../../../plugins/runs/keys.ts'
import { contextProbe } from '../../support/context-probe.ts'
import { testFolder } from '../../support/folder.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { runSettings } from '../../support/run-settings.ts'
import { openStream } from '../../support/sse.ts'

const DAY_MS = 24 * 3600 * 1000

/** A gateway, and a context like that of its plugin `runs`. */
async function start(): Promise<{ gateway: TestGateway; ctx: Context<RunSettings> }> {
	const probe = contextProbe()
	const gateway = await startGateway({ config: 'plugins:\n  probe: true\n', files: probe.files })
	const { events } = gateway.running.gateway // a third-party plugin cannot write the log of a run
	return { gateway, ctx: { ...probe.context(), events, config: runSettings } }
}

void t.test('ended runs are deleted after runs.retention_days, unfinished ones are kept', async (t) => {
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

	const withLongTtl = { ...ctx, config: { ...ctx.config, question_ttl_days: 365 } }
	await tidy(withLongTtl, Date.now() + 29 * DAY_MS)
	t.equal((await gateway.request('GET', `/v1/runs/${ended.body.run_id}`)).status, 200, 'the run is kept for 30 days')

	await tidy(withLongTtl, Date.now() + 31 * DAY_MS)
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
		'the conversation begins with its oldest kept run',
	)
	const again = await gateway.request('POST', '/v1/agents/a/runs', {
		body: { prompt: 'other' },
		headers: { 'idempotency-key': 'k' },
	})
	t.equal(again.status, 200, 'its idempotency key is free again')
})

void t.test('an expired question fails its run, and the next run of the conversation continues', async (t) => {
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

/** Makes an agent write a short-term note in a conversation. Settles once the run has ended. */
async function writeNote(ctx: Context, name: string, conversation: string, trigger = 'api'): Promise<void> {
	const agent = await ctx.use('agents').get(name)
	const ended = Promise.withResolvers<void>()
	const stop = ctx.events.subscribe({ agent_id: name, types: ['run.completed'] }, () => ended.resolve())
	await ctx.use('runs').start(agent, { prompt: '/tool memory.stm_write {"key":"k","value":1}', trigger, conversation })
	await ended.promise
	stop()
	await ctx.use('runs').active(agent, conversation)
}

/** The conversations with short-term notes; the first session is `session`. */
async function conversationsWithNotes(ctx: Context, name: string): Promise<string[]> {
	const { uid } = await ctx.use('agents').get(name)
	const found: string[] = []
	for await (const { key } of ctx.store.list(keys.allShortTerm(uid)))
		found.push(key.at(-1) === uid ? 'session' : (key.at(-1) ?? ''))
	return found.toSorted()
}

void t.test('a reset deletes the notes of all conversations, a new session those of the old one', async (t) => {
	const { gateway, ctx } = await start()
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'a' } })
	const agent = await ctx.use('agents').get('a')
	const many = Array.from({ length: 120 }, (_, n) => keys.shortTerm(agent.uid, `heartbeat:${n}`))
	for (const conversation of ['channel:b', 'mcp:local:x', agent.uid]) await writeNote(ctx, 'a', conversation)
	t.strictSame(await conversationsWithNotes(ctx, 'a'), ['channel:b', 'mcp:local:x', 'session'])
	await ctx.use('runs').newSession(agent)
	t.strictSame(await conversationsWithNotes(ctx, 'a'), ['channel:b', 'mcp:local:x'])
	for (const key of many) await ctx.store.put(key, { k: 1 })
	t.equal((await gateway.request('POST', '/v1/agents/a/reset')).status, 200)
	t.strictSame(await conversationsWithNotes(ctx, 'a'), [])
})

void t.test('notes expire with their conversation', async (t) => {
	const { gateway, ctx } = await start()
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'a' } })
	const agent = await ctx.use('agents').get('a')
	await writeNote(ctx, 'a', 'webhook:1', 'webhook')
	await writeNote(ctx, 'a', 'subagent:1', 'subagent')
	await writeNote(ctx, 'a', 'channel:b', 'chat_a')
	const old = await ctx.use('runs').newSession(agent)
	await ctx.use('runs').newSession(agent)
	await writeNote(ctx, 'a', old)
	const current = await ctx.use('runs').session(agent)
	await writeNote(ctx, 'a', current)
	// A note without a conversation, as earlier versions left it.
	await ctx.store.put(keys.shortTerm(agent.uid, 'heartbeat:gone'), { k: 1 })
	const { body: beat } = await gateway.request('POST', '/v1/agents/a/heartbeats', {
		body: { every: '1d', prompt: 'x' },
	})
	await ctx.store.put(keys.shortTerm(agent.uid, `heartbeat:${beat.id}`), { k: 1 })
	t.equal((await gateway.request('DELETE', `/v1/agents/a/heartbeats/${beat.id}`)).status, 200)
	t.notOk(
		(await conversationsWithNotes(ctx, 'a')).includes(`heartbeat:${beat.id}`),
		'notes are deleted with their heartbeat',
	)

	await tidy(ctx, Date.now())
	t.strictSame(await conversationsWithNotes(ctx, 'a'), [current, 'channel:b'].toSorted())
	await tidy(ctx, Date.now() + 31 * DAY_MS)
	t.strictSame(
		await conversationsWithNotes(ctx, 'a'),
		[current],
		'notes are deleted with the last run of their conversation',
	)
})

void t.test('the next start completes an interrupted deletion of a conversation', async (t) => {
	const home = testFolder(t)
	const first = await startGateway({ home })
	const stream = await openStream(first.url)
	await first.request('POST', '/v1/agents', { body: { name: 'a' } })
	await first.request('POST', '/v1/agents/a/runs', { body: { prompt: 'said before' } })
	await stream.waitFor('run.completed')
	const open = await first.request('POST', '/v1/agents/a/runs', { body: { prompt: '/tool ask {"question": "?"}' } })
	await stream.waitFor('run.paused')
	await first.stop()

	// The state after the first write of a deletion.
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
	t.equal(body.events[0].event_type, 'run.stopped', 'its events are kept')
})
