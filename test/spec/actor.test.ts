/** `payload.actor` of events, and the audit log filtered by actor (interface "Identity"), over HTTP. */
import net from 'node:net'
import { once } from 'node:events'
import t from 'tap'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { startGateway } from '../support/gateway.ts'
import { follow } from '../support/runs.ts'
import { eventually } from '../support/wait.ts'

/** Tools that keep a run going, and a route that emits an event only after its client has disconnected. */
const slow = `
let entered = 0
export default {
	name: 'slow',
	needs: ['auth'],
	events: { 'slow.done': { description: 'It is done.', payload: {} } },
	start(ctx) {
		ctx.primitive({ name: 'slow.ask', description: 'Asks.', run: (_args, call) => call.ask({ question: 'Sure?' }) })
		ctx.primitive({ name: 'slow.stay', description: 'Stays.', run: (_args, call) =>
			new Promise((_, reject) => call.signal.addEventListener('abort', () => reject(new Error('stopped')))) })
	},
	http(server, ctx) {
		server.route({ method: 'POST', path: '/v1/slow', handler: async (request) => {
			const left = new Promise((resolve) => request.raw.res.once('close', resolve))
			entered++
			await left
			await ctx.emit({ event_type: 'slow.done', payload: { actor: { kind: 'gateway' } } })
			return {}
		} })
		server.route({ method: 'GET', path: '/v1/slow', handler: () => ({ entered }) })
	},
}
`
const gateway = await startGateway({
	config: 'server:\n  shutdown_grace_s: 0\nplugins:\n  slow: true\n',
	files: { 'plugins/slow/index.js': slow },
})
t.teardown(() => gateway.stop())

const created = await gateway.request('POST', '/v1/auth/tokens', { body: { scopes: ['*'], label: 'deploy bot' } })
const token = created.body.token as string
const bot = { kind: 'token', id: created.body.id as string, label: 'deploy bot' }
const local = { kind: 'local' }

async function audit(query: Record<string, string>): Promise<EventEnvelope[]> {
	const page = await gateway.request('GET', `/v1/audit?${new URLSearchParams({ limit: '500', ...query })}`)
	if (page.status !== 200) throw new Error(JSON.stringify(page.body))
	return page.body.events as EventEnvelope[]
}

async function latestActor(event_type: string, query: Record<string, string> = {}): Promise<unknown> {
	const [event] = await audit({ event_type, ...query })
	return event?.payload.actor
}

void t.test('events name the caller that caused them', async (t) => {
	t.strictSame(await latestActor('token.created'), local)
	await gateway.request('POST', '/v1/agents', { token, body: { name: 'ada' } })
	t.strictSame(await latestActor('agent.created'), bot)
	await gateway.request('POST', '/v1/agents', { body: { name: 'eve' } })
	t.strictSame(await latestActor('agent.created'), local)
	t.equal((await audit({ event_type: 'gateway.started' }))[0]?.payload.actor, undefined, 'nobody caused the start')
})

void t.test('events of a run name who started, answered and stopped it', async (t) => {
	const runner = await follow(t, gateway, 'runner')
	const start = async (prompt: string, conversation: string): Promise<string> => {
		const { body } = await gateway.request('POST', '/v1/agents/runner/runs', { token, body: { prompt, conversation } })
		return body.run_id as string
	}
	const [asking, stopped] = [await start('/tool slow.ask {}', 'a'), await start('/tool slow.stay {}', 'b')]
	const queued = await start('hello', 'a')
	const { payload } = await runner.waitFor(asking, 'question.asked')
	t.notOk('actor' in payload, 'events of the agent in its own run have no actor')
	t.equal((await runner.call(`ask-responses/${payload.question_id}`, { answer: 'yes' })).status, 200)
	await runner.ended(asking)
	await runner.ended(queued)
	await runner.waitFor(stopped, 'primitive.called')
	await gateway.request('POST', `/v1/runs/${stopped}/cancel`)
	await runner.ended(stopped)

	const actorIn = (run_id: string, event_type: string): Promise<unknown> => latestActor(event_type, { run_id })
	t.strictSame(await actorIn(asking, 'run.started'), bot)
	t.strictSame(await actorIn(asking, 'question.answered'), local)
	t.strictSame(await actorIn(queued, 'run.started'), bot, 'also after the run was queued')
	t.strictSame(await actorIn(stopped, 'run.stopped'), local)
	t.equal(await actorIn(asking, 'run.completed'), undefined)

	const byBot = await audit({ actor: bot.id })
	t.ok(byBot.some(({ run_id, event_type }) => run_id === asking && event_type === 'run.started'))
	t.ok(byBot.every(({ payload: { actor } }) => (actor as typeof bot).id === bot.id))
	const byLocal = await audit({ actor: 'local', run_id: asking })
	t.strictSame(
		byLocal.map(({ event_type }) => event_type),
		['question.answered'],
	)
	t.strictSame(await audit({ actor: 'nobody' }), [])
})

void t.test('the run of a sub-agent names the agent that started it', async (t) => {
	const writer = await follow(t, gateway, 'writer')
	const { run_id } = (
		await gateway.request('POST', '/v1/agents/writer/runs', {
			token,
			body: { prompt: '/tool subagent.spawn {"prompt": "hello", "wait": true}' },
		})
	).body as { run_id: string }
	await writer.ended(run_id)
	const spawned = await audit({ agent_id: 'writer', event_type: 'run.started', actor: 'writer' })
	t.equal(spawned.length, 1)
	t.match(spawned[0]?.payload, { parent_run_id: run_id, actor: { kind: 'agent', id: 'writer' } })
})

void t.test('a security violation names the caller if its token is known', async (t) => {
	const body = { scopes: ['events:read'], label: 'reader' }
	const reader = (await gateway.request('POST', '/v1/auth/tokens', { body })).body as { id: string; token: string }
	t.equal((await gateway.request('GET', '/v1/agents', { token: reader.token })).status, 403)
	const actor = { kind: 'token', id: reader.id, label: 'reader' }
	await eventually(async () => (await audit({ actor: reader.id, event_type: 'security.violation' })).length === 1)
	await gateway.request('DELETE', `/v1/auth/tokens/${reader.id}`)
	t.equal((await gateway.request('GET', '/v1/agents', { token: reader.token })).status, 401)
	await eventually(async () => (await audit({ actor: reader.id, event_type: 'security.violation' })).length === 2)
	t.strictSame(await latestActor('security.violation'), actor)
})

void t.test('a caller that disconnects early is named, whatever actor the plugin sets', async (t) => {
	const { hostname, port } = new URL(gateway.url)
	const socket = net.connect(Number(port), hostname)
	await once(socket, 'connect')
	socket.write(
		`POST /v1/slow HTTP/1.1\r\nhost: ${hostname}:${port}\r\nauthorization: Bearer ${token}\r\ncontent-length: 0\r\n\r\n`,
	)
	await eventually(async () => (await gateway.request('GET', '/v1/slow')).body.entered === 1)
	socket.destroy()
	await eventually(async () => (await audit({ event_type: 'slow.done' })).length === 1)
	t.strictSame(await latestActor('slow.done'), bot)
})
