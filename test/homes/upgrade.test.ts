/** Opens homes of earlier versions, which were killed with kill -9 while runs were active. */
import { createHmac } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { svcFor } from '../support/cli.ts'
import { send } from '../support/gateway.ts'
import type { Answer } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import { spawnGateway } from '../support/process.ts'
import { openStream } from '../support/sse.ts'
import { startTelegram } from '../support/telegram.ts'
import { eventually } from '../support/wait.ts'
import { clientOf, keptVersions, openHome } from './home.ts'

for (const version of keptVersions) void t.test(`a home of ${version}`, (t) => testHome(t, version))

async function testHome(t: Test, version: string): Promise<void> {
	const { folder, home, facts } = openHome(version)
	t.teardown(() => rmSync(folder, { recursive: true, force: true }))
	const model = await startManualModel()
	t.teardown(() => model.stop())
	const telegram = await startTelegram({ knownToken: facts.chat.bot })
	t.teardown(() => telegram.stop())
	const env = {
		MODEL_URL: model.url,
		NODE_OPTIONS: `--import=${fileURLToPath(new URL('clock.mjs', import.meta.url))}`,
		SVC_TEST_NOW: facts.written_at,
	}
	const gateway = await spawnGateway(home, env)
	t.teardown(() => gateway.kill())

	const { request, ended, run } = clientOf(gateway.url)

	await t.test('every response is as before', async (t) => {
		for (const [path, before] of Object.entries(facts.reads)) t.hasStrict(await request('GET', path), before, path)
		for (const [query, before] of Object.entries(facts.searches)) {
			const found = await request('GET', `/v1/agents/ada/memory/search?q=${encodeURIComponent(query)}`)
			t.hasStrict(found, before, query)
		}
		t.match(await send(`${gateway.url}/v1/agents/bob`, 'GET'), { status: 404 })
		const { events } = await request('GET', '/v1/audit?limit=500')
		const now = new Map(events.map((event: { event_id: string }) => [event.event_id, event]))
		t.ok(facts.events.length > 100)
		for (const event of facts.events) t.hasStrict(now.get(event.event_id), event)
	})

	await t.test('an earlier Last-Event-ID resumes after that event', async (t) => {
		const [second, first] = facts.events.slice(-2)
		const stream = await openStream(gateway.url, { headers: { 'last-event-id': first?.event_id ?? '' } })
		await stream.waitFor(({ event_type }) => event_type === 'gateway.started')
		stream.close()
		t.equal(stream.events[0]?.event_id, second?.event_id)
	})

	await t.test('a run resumes after its finished step, and the queued run follows', async (t) => {
		const call = await model.called('Take two steps.')
		t.match(JSON.stringify(call.body.messages), /"role":"tool"/, 'the finished step is not repeated')
		call.answer('two steps taken.')
		t.match(await ended(facts.runs.started), { status: 'completed', answer: /two steps taken\.$/ })
		const { events } = await request('GET', `/v1/audit?run_id=${facts.runs.started}&event_type=primitive.called`)
		t.equal(events.length, 1)
		;(await model.called('Wait your turn.')).answer('now.')
		t.match(await ended(facts.runs.waiting), { status: 'completed', answer: /now\.$/ })
	})

	await t.test('an open question can be answered', async (t) => {
		await request('POST', `/v1/agents/dora/ask-responses/${facts.question}`, { answer: 'blue' })
		t.match(await ended(facts.runs.asking), { status: 'completed', answer: /blue/ })
	})

	await t.test('webhooks and tokens work', async (t) => {
		const body = JSON.stringify({ event: 'deployed again' })
		const deliver = (id: string) => {
			const signature = `sha256=${createHmac('sha256', facts.webhook.secret).update(body).digest('hex')}`
			const headers = { 'x-signature': signature, 'x-delivery-id': id }
			return send(gateway.url + facts.webhook.path, 'POST', { body, headers })
		}
		t.equal((await deliver('delivery-1')).status, 200, 'a repeated delivery')
		t.equal((await deliver('delivery-2')).status, 200)
		const deliveries = await request('GET', '/v1/agents/ada/webhooks/deploys/deliveries')
		const accepted = new Set(deliveries.map(({ run_id }: Answer) => run_id))
		t.equal(accepted.size, 2, 'a repeated delivery starts no second run')
		for (const run_id of accepted) t.match(await ended(String(run_id)), { status: 'completed' })
		t.match(await send(`${gateway.url}/v1/agents`, 'GET', { token: facts.token }), { status: 200 })
		t.match(await send(`${gateway.url}/v1/vault/secrets`, 'GET', { token: facts.token }), { status: 403 })
	})

	await t.test('skills and MCP servers work', async (t) => {
		t.match((await run('ada', '/tool sum {}')).answer, /42/)
		await eventually(async () => (await request('GET', `/v1/agents/ada/mcp/${facts.mcp}`)).status === 'connected')
		const { tools } = await request('GET', `/v1/agents/ada/mcp/${facts.mcp}`)
		t.match((await run('ada', `/tool ${tools[0].tool} {}`)).answer, /\b21\b/, 'with its secret')
	})

	await t.test('the chat is still bound', async (t) => {
		await request('PATCH', `/v1/channels/${facts.chat.channel}`, { config: { api_root: telegram.url } })
		telegram.say(telegram.person(Number(facts.chat.chat), 'Grace'), 'What does Ada drink? Tea?')
		t.match(await telegram.waitFor(({ text }) => /green tea/.test(text)), { chat: { id: Number(facts.chat.chat) } })
	})

	await t.test('the backup can be restored', async (t) => {
		const file = join(home, 'backups', `svc-backup-${facts.backup}.tar.gz`)
		const target = join(folder, 'restored')
		const restored = await svcFor({ home })(['restore', file, '--home', target, '--json'])
		t.equal(restored.code, 0, restored.stderr)
		const other = await spawnGateway(target, env)
		t.teardown(() => other.kill())
		t.hasStrict(await clientOf(other.url).request('GET', '/v1/agents/ada/memory'), facts.reads['/v1/agents/ada/memory'])
	})
}
