/** An HTTP server that is away for a while: it is retried without end, and runs use its tools once it is back. */
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { startNotingServer } from '../../support/mcp-web.ts'
import { add, callTool, until } from '../../support/mcp.ts'
import { follow } from '../../support/runs.ts'
import { chatCompletion, startScriptedModels } from '../../support/scripted-model.ts'

/** Seconds for which it is away during ten runs; 60 in the long version. */
const AWAY_S = Number(process.env.MCP_AWAY_S ?? 0)
const RUNS = 10
const TOOL = 'mcp__web__echo'

const models = await startScriptedModels()
/** Calls the tool until it gets an answer. */
const { url: base_url } = models.add(({ body }, n) => {
	const last = body.messages.at(-1)
	const call = { id: `call-${n}`, type: 'function', function: { name: TOOL, arguments: `{"text": "heard ${n}"}` } }
	const message = String(last.content).startsWith('heard')
		? { content: last.content }
		: { content: null, tool_calls: [call] }
	return chatCompletion(message)
})
const gateway = await startGateway({
	config: `
default_provider: offline
providers:
  persistent: {kind: openai, base_url: '${base_url}', model: m, compat: {streaming: false}}
  offline: {kind: offline}
`,
})
t.teardown(async () => {
	await gateway.stop()
	await models.stop()
})

const hasFailedMoreThan = (n: number) => (server: Answer) => server.failures > n

void t.test('runs that start while a known server is away use its tools once it is back', async (t) => {
	const server = await startNotingServer(t)
	const agents = await Promise.all(
		Array.from({ length: RUNS }, async (_, n) => {
			const agent = await follow(t, gateway, `ada-${n}`, { config: { provider: 'persistent' } })
			const { id } = await add(agent, { name: 'web', transport: 'http', url: server.at('127.0.0.1') })
			await until(gateway, `ada-${n}`, id, ({ status }) => status === 'connected')
			return agent
		}),
	)
	const back = Date.now() + AWAY_S * 1000
	server.away(true)
	const runs: string[] = []
	for (const [n, agent] of agents.entries()) {
		runs.push(await agent.start('Use the tool.'))
		if (AWAY_S > 0) await new Promise((resolve) => setTimeout(resolve, (back - Date.now()) / (RUNS - n)))
	}
	// The first call shows that the server is gone, the second one waits for it.
	await Promise.all(agents.map((agent) => agent.stream.waitFor('mcp.called', 2)))
	server.away(false)
	for (const [n, agent] of agents.entries()) {
		const run_id = runs[n] ?? ''
		t.equal((await agent.ended(run_id)).event_type, 'run.completed')
		t.ok(agent.typesOf(run_id).includes('mcp.result'))
	}
})

void t.test('a server that was never reached is retried without end, and a run waits for its tools', async (t) => {
	const server = await startNotingServer(t)
	server.away(true)
	const bea = await follow(t, gateway, 'bea', { config: { provider: 'offline' } })
	const { id } = await add(bea, { name: 'web', transport: 'http', url: server.at('127.0.0.1') })
	// Runs that wait for the server shorten the pauses between the attempts.
	const waiting = await bea.start('hello')
	const away = await until(gateway, 'bea', id, hasFailedMoreThan(6))
	t.match(away, { status: 'reconnecting', status_detail: /it is retried at least every 60 s/ })
	server.away(false)
	t.equal((await callTool(bea, TOOL, { text: 'hello' })).result, 'hello')
	t.equal((await bea.ended(waiting)).event_type, 'run.completed')
	t.equal(bea.stream.events.filter(({ event_type }) => event_type === 'mcp.disconnected').length, 0)
})

void t.test('a proxy that answers 404 while its server is away does not end the attempts', async (t) => {
	const server = await startNotingServer(t)
	const cleo = await follow(t, gateway, 'cleo', { config: { provider: 'offline' } })
	const { id } = await add(cleo, { name: 'web', transport: 'http', url: server.at('127.0.0.1') })
	server.away('404')
	const run = callTool(cleo, TOOL, { text: 'hello' })
	await until(gateway, 'cleo', id, hasFailedMoreThan(1))
	t.equal((await until(gateway, 'cleo', id, hasFailedMoreThan(2))).status, 'reconnecting')
	server.away(false)
	t.match((await run).event_type, /^mcp\.(result|failed)$/)
	t.equal((await callTool(cleo, TOOL, { text: 'again' })).result, 'again')
})
