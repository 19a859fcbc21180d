/** Heartbeats over HTTP: their creation, change and deletion, the runs that they start, and the beats that they skip. */
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { addToken } from '../support/add.ts'
import { endedRun } from '../support/ended-run.ts'
import { makeHome, startGateway } from '../support/gateway.ts'
import type { Answer, Reply, TestGateway } from '../support/gateway.ts'
import { isOnCluster } from '../support/nats.ts'
import { changeHeartbeats } from '../support/heartbeats.ts'
import { startManualModel } from '../support/manual-model.ts'
import { providersAt } from '../support/providers.ts'
import { assertError } from '../support/error-response.ts'
import { testFolder } from '../support/folder.ts'
import { follow } from '../support/runs.ts'
import { openStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'

const HOUR_MS = 3_600_000
const settings = 'server:\n  shutdown_grace_s: 0\n'

const shared = await startGateway({ config: 'heartbeats:\n  max_per_agent: 4\n' })
t.teardown(() => shared.stop())

/** Creates an agent, and returns the calls of its heartbeats. */
async function heartbeatsOf(gateway: Pick<TestGateway, 'request'>, name: string) {
	await gateway.request('POST', '/v1/agents', { body: { name } })
	const path = `/v1/agents/${name}/heartbeats`
	return {
		path,
		post: (body: unknown): Promise<Reply<Answer>> => gateway.request('POST', path, { body }),
		list: async (): Promise<Answer[]> => (await gateway.request('GET', path)).body,
		remove: (id: string): Promise<Reply<Answer>> => gateway.request('DELETE', `${path}/${id}`),
	}
}

/** The heartbeat events of an agent, oldest first. */
async function readEvents(gateway: Pick<TestGateway, 'request'>, agent: string): Promise<EventEnvelope[]> {
	const { body } = await gateway.request('GET', `/v1/audit?agent_id=${agent}&event_type=heartbeat.*&limit=500`)
	return body.events.toReversed()
}

/** Waits until an agent has exactly `count` heartbeat events, and returns them. */
function eventsOf(gateway: Pick<TestGateway, 'request'>, count: number, agent = 'ada'): Promise<EventEnvelope[]> {
	return eventually(
		() => readEvents(gateway, agent),
		({ length }) => length === count,
	)
}

/** A home with one agent and its heartbeat. */
const template = makeHome({ config: settings }, t)
const heartbeat = await heartbeatIn(template)

/** Creates an agent with a heartbeat in a home whose gateway is not running. */
async function heartbeatIn(home: string): Promise<Answer> {
	const gateway = await startGateway({ home })
	const { body } = await (await heartbeatsOf(gateway, 'ada')).post({ every: '1h', prompt: 'hello' })
	await gateway.stop()
	return body
}

/** A copy of that home, in which the record of the heartbeat is changed. */
async function homeWith(
	t: Test,
	change: () => Record<string, unknown>,
	{ config = settings, prompt = 'hello' }: { config?: string; prompt?: string } = {},
): Promise<{ home: string; id: string }> {
	const home = testFolder(t)
	const { id } = isOnCluster ? await heartbeatIn(home) : heartbeat
	if (!isOnCluster) cpSync(template, home, { recursive: true })
	writeFileSync(join(home, 'config', 'gateway.yaml'), config)
	await changeHeartbeats(home, () => ({ prompt, ...change() }))
	return { home, id }
}

const ago = (ms: number): string => new Date(Date.now() - ms).toISOString()

void t.test('a run with the idempotency key of a beat does not replace the beat', async (t) => {
	const next_at = ago(1_000)
	const { home, id } = await homeWith(t, () => ({}))
	let gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	const start = (): Promise<Reply<Answer>> =>
		gateway.request('POST', '/v1/agents/ada/runs', {
			body: { prompt: 'Do nothing.' },
			headers: { 'idempotency-key': `heartbeat:${id}:${next_at}` },
		})
	const taken = await start()
	t.equal(taken.status, 200)
	t.equal((await start()).body.run_id, taken.body.run_id, 'it is an ordinary key of the caller')
	await endedRun(gateway.url, taken.body.run_id)
	await gateway.stop()
	await changeHeartbeats(home, () => ({ next_at }))

	gateway = await startGateway({ home })
	const [, fired] = await eventsOf(gateway, 2)
	t.match(fired, { event_type: 'heartbeat.fired', payload: { due_at: next_at } })
	t.not(fired?.run_id, taken.body.run_id)
})

void t.test('a heartbeat is created, listed and deleted', async (t) => {
	const { stream } = await follow(t, shared, 'lister')
	const lister = await heartbeatsOf(shared, 'lister')
	const before = Date.now()
	const every = await lister.post({ every: '30m', prompt: 'Look around.' })
	t.equal(every.status, 200)
	const { id, created_at, next_at, ...rest } = every.body
	t.strictSame(rest, {
		cron: null,
		timezone: null,
		every: '30m',
		at: null,
		paused: false,
		prompt: 'Look around.',
		deliver: 'none',
		last_at: null,
	})
	t.equal(Date.parse(next_at) - Date.parse(created_at), 30 * 60_000)
	t.ok(Date.parse(created_at) >= before && Date.parse(created_at) <= Date.now())

	const cron = await lister.post({ cron: '0 9 * * 1-5', timezone: 'Europe/Berlin', prompt: 'Good morning.' })
	t.match(cron.body, { cron: '0 9 * * 1-5', timezone: 'Europe/Berlin', every: null })
	const local = new Date(cron.body.next_at).toLocaleTimeString('en-GB', { timeZone: 'Europe/Berlin' })
	t.equal(local, '09:00:00')
	const utc = await lister.post({ cron: '15 30 4 * * *', prompt: 'With seconds.' })
	t.equal(utc.body.timezone, 'UTC')
	t.match(utc.body.next_at, /T04:30:15\.000Z$/)
	t.strictSame(await lister.list(), [every.body, cron.body, utc.body])

	const created = await stream.waitFor('heartbeat.created')
	t.match(created, { agent_id: 'lister', run_id: null, payload: { heartbeat_id: id, every: '30m', next_at } })
	const gone = await lister.remove(id)
	t.equal(gone.status, 200)
	t.strictSame(gone.body, { id, status: 'deleted' })
	t.match((await stream.waitFor('heartbeat.deleted')).payload, { heartbeat_id: id })
	assertError(t, await lister.remove(id), {
		status: 404,
		code: 'not_found',
		message: new RegExp(`"${id}".*${cron.body.id}`),
	})
	t.strictSame(await lister.list(), [cron.body, utc.body])

	const other = await heartbeatsOf(shared, 'other')
	assertError(t, await other.remove(cron.body.id), { status: 404, code: 'not_found', message: /it has none/ })
	t.equal((await lister.list()).length, 2)
	for (const method of ['GET', 'POST'])
		assertError(
			t,
			await shared.request(
				method,
				'/v1/agents/nobody/heartbeats',
				method === 'POST' ? { body: { every: '1h', prompt: 'x' } } : {},
			),
			{ status: 404, code: 'not_found' },
		)
})

void t.test('an invalid schedule is refused with the reason', async (t) => {
	const picky = await heartbeatsOf(shared, 'picky')
	for (const [fields, path, message] of [
		[{}, '', /^give cron, every or at$/],
		[{ cron: '0 9 * * *', every: '1h' }, 'every', /not cron and every/],
		[{ every: '59s' }, 'every', /at least one minute/],
		[{ every: '1' }, 'every', /at least one minute/],
		[{ every: '1 hour' }, 'every', /whole number with s, m, h or d, such as 30m, and at least one minute/],
		[{ every: '-5m' }, 'every', /at least one minute/],
		[{ every: '1.5h' }, 'every', /at least one minute/],
		[{ every: '0d' }, 'every', /at least one minute/],
		[{ every: '999999999d' }, 'every', /at most 366d/],
		[{ every: '1h', timezone: 'UTC' }, 'timezone', /cron or at only/],
		[{ every: 60 }, 'every', /string/],
		[{ cron: 'soon' }, 'cron', /five fields/],
		[{ cron: '@daily' }, 'cron', /five fields/],
		[{ cron: '2030-01-01T00:00:00' }, 'cron', /five fields/],
		[{ cron: '0 0 0 1 1 * 2030' }, 'cron', /five fields/],
		[{ cron: '61 * * * *' }, 'cron', /minute: 61/],
		[{ cron: 'x y z a b' }, 'cron', /is not a pattern/],
		[{ cron: '0 0 31 2 *' }, 'cron', /never matches/],
		[{ cron: '* * * * * *' }, 'cron', /more than once a minute/],
		[{ cron: '*/30 * * * * *' }, 'cron', /more than once a minute/],
		[{ cron: '0,59 0 0 1 1 *' }, 'cron', /more than once a minute/],
		[{ cron: '0 9 * * *', timezone: 'Mars/Base' }, 'timezone', /"Mars\/Base" is not known.*Europe\/Berlin/],
		[{ cron: '0 9 * * *', timezone: '+02:00' }, 'timezone', /is not known/],
		[{ cron: `${'0,'.repeat(200)}0 * * * *` }, 'cron', /200/],
		[{ every: '1h', extra: 1 }, 'extra', /not allowed/],
		[{ every: '1h', prompt: '' }, 'prompt', /empty/],
		[{ every: '1h', prompt: 'x'.repeat(102_401) }, 'prompt', /102400/],
	] as const) {
		const reply = await picky.post({ prompt: 'hello', ...fields })
		assertError(t, reply, { status: 400, code: 'invalid_request', message, path }, JSON.stringify(fields).slice(0, 60))
	}
	t.strictSame(await picky.list(), [])
})

void t.test('an agent has at most heartbeats.max_per_agent, and a new agent with its name has none', async (t) => {
	const full = await heartbeatsOf(shared, 'full')
	const replies = await Promise.all(Array.from({ length: 12 }, () => full.post({ every: '1h', prompt: 'hello' })))
	t.equal(replies.filter(({ status }) => status === 200).length, 4)
	for (const reply of replies.filter(({ status }) => status !== 200))
		assertError(t, reply, { status: 409, code: 'conflict', message: /4 heartbeats.*max_per_agent/ })
	await shared.request('DELETE', '/v1/agents/full')
	const recreated = await heartbeatsOf(shared, 'full')
	t.strictSame(await recreated.list(), [])
	t.equal((await recreated.post({ every: '1h', prompt: 'hello' })).status, 200)
})

void t.test('reading requires agents:read, and changing agents:write', async (t) => {
	const gateway = await startGateway({ config: 'auth_mode: token\n' })
	t.teardown(() => gateway.stop())
	const by = (await addToken(gateway, ['*'])).token
	const { token: reader } = await addToken(gateway, ['agents:read'], { by })
	const { token: writer } = await addToken(gateway, ['agents:write'], { by })
	const { token: other } = await addToken(gateway, ['runs:write'], { by })
	await gateway.request('POST', '/v1/agents', { token: by, body: { name: 'ada' } })
	const path = '/v1/agents/ada/heartbeats'
	const body = { every: '1h', prompt: 'hello' }
	const made = await gateway.request('POST', path, { token: writer, body })
	t.equal(made.status, 200)
	t.equal((await gateway.request('GET', path, { token: reader })).status, 200)
	for (const [method, where, token] of [
		['GET', path, writer],
		['GET', path, other],
		['POST', path, reader],
		['POST', path, other],
		['DELETE', `${path}/${made.body.id}`, reader],
	] as const)
		assertError(
			t,
			await gateway.request(method, where, { token, ...(method === 'POST' && { body }) }),
			{ status: 403, code: 'forbidden', message: /agents:(read|write)/ },
			`${method} ${where}`,
		)
	t.equal((await gateway.request('GET', path)).status, 401)
	t.equal((await gateway.request('DELETE', `${path}/${made.body.id}`, { token: writer })).status, 200)
})

void t.test('a due heartbeat starts one run in its own conversation, not before its time', async (t) => {
	const { home, id } = await homeWith(t, () => ({ next_at: ago(-1_500) }))
	const gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	const [, fired] = await eventsOf(gateway, 2)
	t.match(fired, { event_type: 'heartbeat.fired', agent_id: 'ada', payload: { heartbeat_id: id } })
	const { run_id, due_at } = fired?.payload ?? {}
	t.match(fired, { run_id, sequence: 1 }, 'the first event of its run')
	t.ok(String(fired?.timestamp) >= String(due_at), 'not before its time')
	const run = await endedRun(gateway.url, String(run_id))
	t.match(run, { status: 'completed', trigger: 'heartbeat', conversation: `heartbeat:${id}`, prompt: 'hello' })
	t.equal((await gateway.request('GET', '/v1/agents/ada/runs')).body.length, 1)
	t.strictSame((await gateway.request('GET', '/v1/agents/ada/history')).body, [], 'not in the session of the API')

	const settled = await eventually(
		async () => (await (await heartbeatsOf(gateway, 'ada')).list())[0],
		({ last_at }) => last_at !== null,
	)
	t.equal(Date.parse(settled.next_at), Date.parse(String(due_at)) + HOUR_MS)
	t.equal(settled.last_at, run.created_at)
	t.notOk('begun' in settled)
})

void t.test('of beats missed during a downtime, a recent one fires once and an old one is skipped', async (t) => {
	for (const [late, event_type] of [
		[HOUR_MS / 2, 'heartbeat.fired'],
		[2 * HOUR_MS, 'heartbeat.skipped'],
	] as const) {
		const { home, id } = await homeWith(t, () => ({ next_at: ago(late) }))
		const gateway = await startGateway({ home })
		const seen = await eventsOf(gateway, 2)
		t.strictSame(
			seen.map((event) => event.event_type),
			['heartbeat.created', event_type],
		)
		t.equal(seen[1]?.payload.heartbeat_id, id)
		const [{ next_at }] = await eventually(
			() => heartbeatsOf(gateway, 'ada').then((ada) => ada.list()),
			([first]) => Date.parse(first.next_at) > Date.now(),
		)
		t.ok(Date.parse(next_at) > Date.now() + HOUR_MS * 0.9, 'the next beat counts from now')
		if (event_type === 'heartbeat.skipped') t.match(seen[1]?.payload, { reason: 'missed', next_at })
		t.equal((await gateway.request('GET', '/v1/agents/ada/runs')).body.length, event_type === 'heartbeat.fired' ? 1 : 0)
		await gateway.stop()
	}
})

void t.test('a beat is skipped while its agent is busy, but not while it waits for an answer', async (t) => {
	const model = await startManualModel()
	t.teardown(() => model.stop())
	const config = settings + providersAt({ held: model.url })
	const { home, id } = await homeWith(t, () => ({}), { config, prompt: 'the beat' })
	let gateway = await startGateway({ home })
	await gateway.request('POST', '/v1/agents/ada/runs', { body: { prompt: 'a long one' } })
	await model.called('a long one')
	await gateway.stop()
	await changeHeartbeats(home, () => ({ next_at: ago(1_000) }))

	gateway = await startGateway({ home })
	const skipped = await eventsOf(gateway, 2)
	t.match(skipped[1], { event_type: 'heartbeat.skipped', payload: { heartbeat_id: id, reason: 'busy' } })
	const call = await model.called('a long one', 2)
	call.callTool('ask', JSON.stringify({ question: 'Which one?' }))
	await eventually(
		async () => (await gateway.request('GET', '/v1/agents/ada/questions')).body,
		(questions) => questions.length === 1,
	)
	await gateway.stop()
	await changeHeartbeats(home, () => ({ next_at: ago(1_000) }))

	gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	const fired = await eventsOf(gateway, 3)
	t.match(fired[2], { event_type: 'heartbeat.fired', payload: { heartbeat_id: id } })
	;(await model.called('the beat')).answer('done')
})

void t.test('an open question delays one beat of its heartbeat, skips the next, and delays no other', async (t) => {
	const model = await startManualModel()
	t.teardown(() => model.stop())
	const config = settings + providersAt({ held: model.url })
	const { home, id } = await homeWith(t, () => ({ next_at: ago(1_000) }), { config, prompt: 'the beat' })
	let gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	const openQuestions = (count: number): Promise<Answer[]> =>
		eventually(
			async () => (await gateway.request('GET', '/v1/agents/ada/questions')).body,
			(questions) => questions.length === count,
		)
	const due = async (which: (record: Answer) => boolean): Promise<void> => {
		await gateway.stop()
		await changeHeartbeats(home, (record) => (which(record) ? { next_at: ago(1_000) } : {}))
		gateway = await startGateway({ home })
	}
	;(await model.called('the beat')).callTool('ask', JSON.stringify({ question: 'Which one?' }))
	await openQuestions(1)
	await gateway.request('POST', '/v1/agents/ada/runs', { body: { prompt: 'in the session' } })
	;(await model.called('in the session')).callTool('ask', JSON.stringify({ question: 'And here?' }))
	await openQuestions(2)
	await gateway.request('POST', '/v1/agents/ada/runs', { body: { prompt: 'behind it' } })
	const { body: other } = await (await heartbeatsOf(gateway, 'ada')).post({ every: '2h', prompt: 'the other' })

	await due((record) => record.id === id)
	t.match((await eventsOf(gateway, 4))[3], { event_type: 'heartbeat.fired', payload: { heartbeat_id: id } })
	await due((record) => record.id === id)
	t.match((await eventsOf(gateway, 5))[4], {
		event_type: 'heartbeat.skipped',
		payload: { heartbeat_id: id, reason: 'busy' },
	})
	await due((record) => record.id === other.id)
	t.match((await eventsOf(gateway, 6))[5], { event_type: 'heartbeat.fired', payload: { heartbeat_id: other.id } })
	;(await model.called('the other')).answer('done')
})

void t.test('a beat fires once, at whichever point the gateway died', async (t) => {
	const { home } = await homeWith(t, () => ({ next_at: ago(60_000) }))
	let gateway = await startGateway({ home })
	const before = await eventsOf(gateway, 2)
	const { run_id, due_at } = before[1]?.payload ?? {}
	await eventually(
		async () => (await gateway.request('GET', `/v1/runs/${run_id}`)).body,
		(run) => run.status === 'completed',
	)
	await gateway.stop()
	// As if it had died after the run was started and its event stored, but before the record was updated.
	await changeHeartbeats(home, () => ({
		next_at: String(due_at),
		last_at: null,
		begun: { at: ago(HOUR_MS), skip: null },
	}))

	gateway = await startGateway({ home })
	const [settled] = await eventually(
		() => heartbeatsOf(gateway, 'ada').then((ada) => ada.list()),
		([first]) => first.last_at !== null,
	)
	t.ok(Date.parse(settled.next_at) > Date.now())
	t.equal((await gateway.request('GET', '/v1/agents/ada/runs')).body.length, 1, 'no second run')
	t.strictSame(
		(await readEvents(gateway, 'ada')).map((event) => event.event_type),
		['heartbeat.created', 'heartbeat.fired'],
		'one event',
	)
	await gateway.stop()
	// As if it had died after the beat was marked as begun, but before the run was started. It fires however late it is.
	await changeHeartbeats(home, () => ({ next_at: ago(5 * HOUR_MS), begun: { at: ago(4 * HOUR_MS), skip: null } }))

	gateway = await startGateway({ home })
	const after = await eventsOf(gateway, 3)
	t.equal(after[2]?.event_type, 'heartbeat.fired')
	t.not(after[2]?.payload.run_id, run_id)
	t.equal((await gateway.request('GET', '/v1/agents/ada/runs')).body.length, 2)
	await gateway.stop()
	// As if it had died after the skip was stored, but before its event was.
	await changeHeartbeats(home, () => ({ next_at: ago(HOUR_MS), begun: { at: ago(1_000), skip: 'busy' } }))

	gateway = await startGateway({ home })
	const last = await eventsOf(gateway, 4)
	t.match(last[3], { event_type: 'heartbeat.skipped', payload: { reason: 'busy' } })
	t.equal((await gateway.request('GET', '/v1/agents/ada/runs')).body.length, 2)
	await gateway.stop()
})

void t.test('a heartbeat survives changes of the settings, and each beat fires once', async (t) => {
	const { home, id } = await homeWith(t, () => ({ next_at: ago(-2_000) }))
	const gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	const reloads = await openStream(gateway.url, { query: { event_type: 'plugin.reloaded' } })
	t.teardown(() => reloads.close())
	for (const limit of [1, 2, 3]) {
		writeFileSync(join(home, 'config', 'gateway.yaml'), `${settings}heartbeats:\n  max_per_agent: ${limit}\n`)
		await reloads.waitFor(({ payload }) => payload.plugin === 'heartbeats', limit)
	}
	const ada = await heartbeatsOf(gateway, 'ada')
	await eventually(ada.list, ([first]) => first.last_at !== null)
	const { body: second } = await ada.post({ every: '2h', prompt: 'second' })
	t.equal((await ada.list()).length, 2)
	t.equal((await ada.remove(second.id)).status, 200)
	t.strictSame(
		(await readEvents(gateway, 'ada')).map(({ event_type, payload }) => [event_type, payload.heartbeat_id]),
		[
			['heartbeat.created', id],
			['heartbeat.fired', id],
			['heartbeat.created', second.id],
			['heartbeat.deleted', second.id],
		],
	)
})

void t.test('agents create and delete their own heartbeats', async (t) => {
	const ada = await follow(t, shared, 'maker')
	const maker = await heartbeatsOf(shared, 'maker')
	const made = await ada.complete(
		'/tool heartbeat.create {"cron": "0 7 * * *", "timezone": "Asia/Tokyo", "prompt": "Wake up."}',
	)
	const created = await ada.waitFor(made, 'heartbeat.created')
	const [listed] = await maker.list()
	t.match(listed, { cron: '0 7 * * *', timezone: 'Asia/Tokyo', prompt: 'Wake up.', id: created.payload.heartbeat_id })
	const result = JSON.parse(String((await ada.waitFor(made, 'primitive.result')).payload.result))
	t.strictSame(result, { id: listed.id, next_at: listed.next_at, deliver: 'none' })

	const bob = await follow(t, shared, 'thief')
	const tried = await bob.complete(`/tool heartbeat.delete {"id": "${listed.id}"}`)
	const failed = await bob.waitFor(tried, 'primitive.failed')
	t.match(failed.payload, { code: 'not_found', message: /"thief" has no heartbeat/ })
	t.equal((await maker.list()).length, 1)

	const refusedRun = await ada.complete('/tool heartbeat.create {"cron": "* * * * * *", "prompt": "Too often."}')
	t.match((await ada.waitFor(refusedRun, 'primitive.failed')).payload, {
		code: 'invalid_arguments',
		message: /more than once a minute/,
	})
	const deleted = await ada.complete(`/tool heartbeat.delete {"id": "${listed.id}"}`)
	await ada.waitFor(deleted, 'heartbeat.deleted')
	t.strictSame(await maker.list(), [])
})

void t.test("a schedule without a timezone uses the agent's", async (t) => {
	const config = { timezone: 'Asia/Tokyo' }
	await shared.request('POST', '/v1/agents', { body: { name: 'local', config } })
	const local = await heartbeatsOf(shared, 'local')
	const prompt = 'Wake up.'
	const morning = await local.post({ cron: '0 7 * * *', prompt })
	t.match(morning.body, { timezone: 'Asia/Tokyo', next_at: /T22:00:00\.000Z$/ })
	t.match(
		(await local.post({ at: `${new Date().getFullYear() + 1}-03-01T07:00`, prompt })).body.next_at,
		/-02-28T22:00|-02-29T22:00/,
	)
	t.match((await local.post({ every: '1h', prompt })).body, { timezone: null, every: '1h' })
	t.match((await local.post({ cron: '0 7 * * *', timezone: 'UTC', prompt })).body, {
		timezone: 'UTC',
		next_at: /T07:00/,
	})
})

void t.test('a heartbeat is changed, paused and resumed', async (t) => {
	const { stream } = await follow(t, shared, 'changer')
	const changer = await heartbeatsOf(shared, 'changer')
	const { id } = (await changer.post({ every: '30m', prompt: 'Look around.' })).body
	const patch = (body: unknown): Promise<Reply<Answer>> => shared.request('PATCH', `${changer.path}/${id}`, { body })
	const berlin = await patch({ cron: '0 9 * * *', timezone: 'Europe/Berlin' })
	t.match(berlin, {
		status: 200,
		body: { id, cron: '0 9 * * *', timezone: 'Europe/Berlin', every: null, prompt: 'Look around.' },
	})
	t.match(
		await patch({ cron: '0 10 * * *' }),
		{ body: { cron: '0 10 * * *', timezone: 'Europe/Berlin' } },
		'another time in the same zone',
	)
	t.match(await patch({ timezone: 'UTC', prompt: 'Look again.' }), {
		body: { cron: '0 10 * * *', timezone: 'UTC', next_at: /T10:00:00/, prompt: 'Look again.' },
	})
	const paused = await patch({ paused: true })
	t.match(paused, { status: 200, body: { paused: true, next_at: null } })
	t.match(await patch({ every: '1h' }), { body: { paused: true, next_at: null, cron: null, every: '1h' } })
	const before = Date.now()
	const resumed = await patch({ paused: false })
	t.match(resumed.body, { paused: false, every: '1h' })
	t.ok(Date.parse(resumed.body.next_at) >= before + HOUR_MS, 'the interval counts from now')
	t.strictSame(await changer.list(), [resumed.body])
	const events = await eventsOf(shared, 7, 'changer')
	t.match(events[4]?.payload, { heartbeat_id: id, next_at: null })
	t.match(await stream.waitFor('heartbeat.changed'), { run_id: null, payload: { cron: '0 9 * * *' } })

	for (const [body, path, message] of [
		[{}, '', /at least 1/],
		[{ every: '1h', at: 'in 1 hour' }, 'at', /only one of/],
		[{ timezone: 'UTC' }, '', /give cron, every or at/],
		[{ every: 'often' }, 'every', /at least one minute/],
		[{ prompt: '' }, 'prompt', /empty/],
		[{ paused: 'yes' }, 'paused', /boolean/],
	] as const)
		assertError(t, await patch(body), { status: 400, code: 'invalid_request', message, path }, JSON.stringify(body))
	t.strictSame(await changer.list(), [resumed.body], 'nothing has changed')
	assertError(t, await shared.request('PATCH', `${changer.path}/none`, { body: { paused: true } }), {
		status: 404,
		code: 'not_found',
	})
	await changer.remove(id)
})

void t.test('a paused heartbeat does not fire, and continues when it is resumed', async (t) => {
	const { home, id } = await homeWith(t, () => ({ next_at: null, paused: true, at: ago(HOUR_MS), every: null }))
	const gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	const ada = await heartbeatsOf(gateway, 'ada')
	const patch = (body: unknown) => gateway.request('PATCH', `${ada.path}/${id}`, { body })
	assertError(t, await patch({ paused: false }), {
		status: 400,
		code: 'invalid_request',
		message: /passed while it was paused/,
		path: 'at',
	})
	// On a busy machine the time may pass before the request is read, which is refused.
	await eventually(
		() => patch({ paused: false, at: new Date(Date.now() + 100).toISOString() }),
		({ status }) => status === 200,
	)
	const [run] = await eventually(
		async () => (await gateway.request('GET', '/v1/agents/ada/runs')).body,
		(runs) => runs.length === 1,
	)
	t.match(run, { trigger: 'heartbeat', prompt: 'hello' })
	await eventually(async () => (await ada.list()).length === 0)
	t.notOk((await readEvents(gateway, 'ada')).some(({ event_type }) => event_type === 'heartbeat.deleted'))
})

void t.test('a heartbeat with a single time fires exactly once, however late, even if the agent is busy', async (t) => {
	const model = await startManualModel()
	t.teardown(() => model.stop())
	const config = settings + providersAt({ held: model.url })
	const at = ago(72 * HOUR_MS)
	const once = { every: null, at, next_at: at }
	const { home, id } = await homeWith(t, () => ({}), { config, prompt: 'the reminder' })
	let gateway = await startGateway({ home })
	await gateway.request('POST', '/v1/agents/ada/runs', { body: { prompt: 'a long one' } })
	await model.called('a long one')
	await gateway.stop()
	await changeHeartbeats(home, () => once)

	gateway = await startGateway({ home })
	await model.called('the reminder')
	const [, fired] = await eventsOf(gateway, 2)
	t.match(fired, { event_type: 'heartbeat.fired', payload: { heartbeat_id: id, due_at: once.at } })
	await eventually(async () => (await (await heartbeatsOf(gateway, 'ada')).list()).length === 0)
	await gateway.stop()
	gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	;(await model.called('the reminder', 2)).answer('done')
	const runs = (await gateway.request('GET', '/v1/agents/ada/runs')).body
	t.equal(runs.filter(({ trigger }: Answer) => trigger === 'heartbeat').length, 1)
	t.equal((await (await heartbeatsOf(gateway, 'ada')).post({ at: 'in 3 hours', prompt: 'x' })).status, 200)
})
