/** Sessions continue after a restart of the gateway: most clients do not open another one, and would fail until their own restart. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import t from 'tap'
import type { Test } from 'tap'
import { openLog } from '../../../core/log/log.ts'
import { keptSessions } from '../../../plugins/mcp-server/kept-sessions.ts'
import { addToken } from '../../support/add.ts'
import { makeHome, startGateway } from '../../support/gateway.ts'
import type { Answer, TestGateway } from '../../support/gateway.ts'
import { openMemory } from '../../support/memory-engine.ts'
import { eventually } from '../../support/wait.ts'
import { initialize, openRaw, openStream, post } from './client.ts'

const ping = { jsonrpc: '2.0', id: 9, method: 'ping' }

/** Returns a function that starts the gateway of one home, and restarts it when called again. */
async function restartable(t: Test, settings = 'true'): Promise<() => Promise<TestGateway>> {
	const home = makeHome({ config: `plugins: {mcp-server: ${settings}}\n` }, t)
	let gateway: TestGateway | undefined
	t.teardown(() => gateway?.stop())
	return async () => {
		await gateway?.stop()
		gateway = await startGateway({ home })
		return gateway
	}
}

const statusOf = async ({ url }: TestGateway, session: string, token?: string): Promise<number> =>
	(
		await post({ url }, ping, {
			...(token !== undefined && { token }),
			headers: { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' },
		})
	).status

void t.test('the official client continues its conversation, and still gets questions', async (t) => {
	const start = await restartable(t)
	let { url } = await start()
	const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
		// The gateway has another port after each start of a test.
		fetch: async (to, init) => fetch(String(to).replace(new URL(String(to)).origin, url), init),
	})
	const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: { form: {} } } })
	client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { answer: 'blue' } }))
	t.teardown(() => client.close())
	await client.connect(transport as Transport)
	const call = async (prompt: string): Promise<{ run_id: string; answer: string }> => {
		const result: Answer = await client.callTool({ name: 'run_agent', arguments: { agent: 'ada', prompt } })
		return result.structuredContent
	}
	const conversationOf = async (gateway: TestGateway, run_id: string): Promise<string> =>
		(await gateway.request('GET', `/v1/runs/${run_id}`)).body.conversation

	const gateway = await start()
	;({ url } = gateway)
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const { run_id } = await call('Hello')
	const conversation = await conversationOf(gateway, run_id)
	t.ok(conversation)

	const next = await start()
	;({ url } = next)
	const asked = await call('/tool ask {"question": "Which colour?"}')
	t.match(asked, { answer: /blue/ })
	t.equal(await conversationOf(next, asked.run_id), conversation)
})

void t.test('only its owner can continue a session, and an ended one cannot be continued', async (t) => {
	const start = await restartable(t)
	const first = await start()
	const [mine, other, revoked] = [
		await addToken(first, ['*']),
		await addToken(first, ['*']),
		await addToken(first, ['*']),
	]
	const kept = await openRaw(first, mine.token)
	const local = await openRaw(first)
	const ended = await openRaw(first, mine.token)
	const orphaned = await openRaw(first, revoked.token)
	const headers = { 'mcp-session-id': ended.id }
	t.equal((await first.request('DELETE', '/mcp', { token: mine.token, headers })).status, 204)
	await first.request('DELETE', `/v1/auth/tokens/${revoked.id}`)

	const second = await start()
	t.equal(await statusOf(second, kept.id, other.token), 404)
	t.equal(await statusOf(second, kept.id), 404, 'a local caller')
	const statuses = await Promise.all(Array.from({ length: 5 }, () => statusOf(second, kept.id, mine.token)))
	t.same(new Set(statuses), new Set([200]), 'simultaneous requests')
	t.equal(await statusOf(second, local.id), 200)
	t.equal(await statusOf(second, ended.id, mine.token), 404)
	t.equal(await statusOf(second, orphaned.id, revoked.token), 401)
	t.equal(await statusOf(second, orphaned.id, mine.token), 404)
	t.equal(await statusOf(await start(), kept.id, mine.token), 200, 'after another restart')
})

void t.test('streams after a restart do not reuse the ids of events from before it', async (t) => {
	const start = await restartable(t)
	const first = await start()
	await first.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const { id } = await openRaw(first)
	const run = { name: 'run_agent', arguments: { agent: 'ada', prompt: 'Hello' } }
	const call = { jsonrpc: '2.0', id: 5, method: 'tools/call', params: run }
	const before = await openStream({ url: first.url, id }, call)
	await before.ended
	const { url } = await start()
	const after = await openStream({ url, id }, { ...call, id: 6 })
	await after.ended
	for (const event of before.ids()) t.notOk(after.ids().includes(event))
	const resumed = await openStream({ url, id }, undefined, { 'last-event-id': before.ids().at(-1) ?? '' })
	t.equal(resumed.status, 200)
	t.same(resumed.messages(), [])
	resumed.leave()
	await resumed.ended
})

void t.test('a session whose client info is large ends with the gateway', async (t) => {
	const start = await restartable(t)
	const params = { ...initialize.params, clientInfo: { name: 'x'.repeat(5_000), version: '1' } }
	const opened = await post(await start(), { ...initialize, params })
	t.equal(opened.status, 200)
	t.equal(await statusOf(await start(), opened.headers.get('mcp-session-id') ?? ''), 404)
})

void t.test('a session that its client does not use for idle_timeout_s after a restart ends', async (t) => {
	const start = await restartable(t, '{max_sessions: 400, idle_timeout_s: 1}')
	const first = await start()
	const sessions = await Promise.all(Array.from({ length: 190 }, () => openRaw(first)))
	const second = await start()
	// A request continues its session, so each session gets only one.
	await eventually(async () => (await statusOf(second, sessions.pop()?.id ?? '')) === 404)
	t.ok(sessions.length > 0)
})

void t.test('a start keeps at most as many sessions as can be open', async (t) => {
	const { store } = openMemory()
	const kept = keptSessions({ store, log: openLog({ level: 'silent', format: 'json' }) })
	const ids = ['a', 'b', 'c', 'd']
	for (const id of ids) await kept.keep(id, { owner: 'local', conversation: 'c', initialize: {} })
	const left = async (): Promise<string[]> => {
		const found = await Promise.all(ids.map(async (id) => ((await kept.find(id)) ? id : [])))
		return found.flat()
	}
	await kept.forgetOthers(['b'], 2)
	t.equal((await left()).length, 3)
	t.ok((await left()).includes('b'))
	await kept.forgetOthers(['b'], 0)
	t.same(await left(), ['b'])
})
