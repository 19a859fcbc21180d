/**
 * Makes a home with an older version, which upgrade.test.ts opens with the current one. Run it once for each release:
 *
 *     git worktree add /tmp/old 6777237 && (cd /tmp/old && npm ci)
 *     node test/homes/make.ts /tmp/old 0.1.0
 *
 * The program of /tmp/old writes the home through its own API, and is killed while runs are active. The archive has the home and
 * `facts.json`: the responses of that version, which the current one must return as well.
 */
import { execFileSync, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeHome, send } from '../support/gateway.ts'
import type { Answer } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import { programText, skillText } from '../support/skills.ts'
import { startTelegram } from '../support/telegram.ts'
import { eventually } from '../support/wait.ts'
import { clientOf } from './home.ts'
import type { Facts } from './home.ts'

const [clone = '', version = ''] = process.argv.slice(2)
if (!clone || !version) throw new Error('usage: node test/homes/make.ts FOLDER-OF-THAT-VERSION VERSION')

/** An MCP server that needs no file. Its tool returns the length of its secret. */
const MCP_SERVER = `
const lines = require('node:readline').createInterface({ input: process.stdin })
const tools = [{ name: 'reveal', description: 'Answers with the length of its token.', inputSchema: { type: 'object' } }]
lines.on('line', (line) => {
	const { id, method, params } = JSON.parse(line)
	if (id === undefined) return
	const info = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'small', version: '1' } }
	const text = String(process.env.TOKEN.length)
	const result = { initialize: info, 'tools/list': { tools }, 'tools/call': { content: [{ type: 'text', text }] } }[method] ?? {}
	process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
})`

const model = await startManualModel()
const telegram = await startTelegram()
const home = makeHome({
	config: `
default_provider: offline
providers:
  offline: { kind: offline }
  held: { kind: openai, base_url: "\${MODEL_URL}", api_key: test, model: gpt-test }
`,
})
const child = spawn(process.execPath, ['core/main.ts'], {
	cwd: resolve(clone),
	env: {
		PATH: process.env.PATH,
		HOME: home,
		SVC_HOME: home,
		SVC_PORT: '0',
		SVC_LEGACY_PORT: '0',
		SVC_LOG_LEVEL: 'warn',
		MODEL_URL: model.url,
	},
	stdio: ['ignore', 'pipe', 'inherit'],
})
const exited = once(child, 'exit')
await new Promise<void>((resolve) => {
	let text = ''
	child.stdout.on('data', (data: Buffer) => {
		text += data.toString()
		if (text.includes('listens at')) resolve()
	})
})
const { url = '' } = JSON.parse(readFileSync(join(home, 'run/gateway.json'), 'utf8')) as Record<string, string>
const { request, ended, run } = clientOf(url)

// Agents, one of them deleted.
await request('POST', '/v1/agents', { name: 'ada', persona: 'You keep the books.', config: { max_steps: 20 } })
for (const name of ['bob', 'cleo', 'dora']) {
	const config = name === 'cleo' ? { provider: 'held' } : {}
	await request('POST', '/v1/agents', { name, config })
}
await run('bob', 'Remember me.')
await request('DELETE', '/v1/agents/bob')

// A secret with a grant, and an MCP server that uses it.
const secret = await request('POST', '/v1/vault/secrets', { name: 'TOKEN', value: 'correct-horse-battery' })
await request('POST', '/v1/vault/grants', { agent_id: 'ada', secret_id: secret.id, reveal: false })
const mcp = await request('POST', '/v1/agents/ada/mcp', {
	name: 'small',
	transport: 'stdio',
	command: 'node',
	args: ['-e', MCP_SERVER],
	env: { TOKEN: { secret: 'TOKEN' } },
})

// Skills: one active, one in quarantine.
const install = (content: string): Promise<Answer> => request('POST', '/v1/agents/ada/skills/install', { content })
const sum = await install(programText('sum', 'return 40 + 2'))
const { digest } = await request('GET', `/v1/agents/ada/skills/${sum.id}`)
await request('POST', `/v1/agents/ada/skills/${sum.id}/approve`, { digest })
await install(skillText('manners', 'Say please.'))

// Memory of both kinds, and a conversation of several turns.
const memories = [
	'The invoices are due on the third Friday of each month.',
	'Ada prefers green tea in the morning.',
	'Der Schlüssel zum Archiv liegt beim Hausmeister.',
	'The server room is cooled to nineteen degrees.',
]
for (const content of memories) await run('ada', `/tool memory.store ${JSON.stringify({ content })}`)
await run('ada', '/tool memory.stm_write {"key": "budget", "value": {"left": 120}}')
await run('ada', '/tool sum {}')
await run('ada', 'Good evening.')

// A webhook with a delivery, a heartbeat, tokens.
const webhook = await request('POST', '/v1/agents/ada/webhooks', { slug: 'deploys' })
const { pathname } = new URL(webhook.url)
const delivery = JSON.stringify({ event: 'deployed' })
const signature = createHmac('sha256', webhook.secret).update(delivery).digest('hex')
const delivered = await send(url + pathname, 'POST', {
	body: delivery,
	headers: { 'x-signature': `sha256=${signature}`, 'x-delivery-id': 'delivery-1' },
})
if (delivered.status !== 200) throw new Error(`the delivery was refused: ${JSON.stringify(delivered.body)}`)
const [{ run_id }] = await request('GET', '/v1/agents/ada/webhooks/deploys/deliveries')
await ended(run_id)
await request('POST', '/v1/agents/ada/heartbeats', {
	cron: '0 4 1 1 *',
	timezone: 'Europe/Vienna',
	prompt: 'Happy new year.',
})
const token = await request('POST', '/v1/auth/tokens', { scopes: ['agents:read'] })

// A channel with a binding.
const bot = await request('POST', '/v1/vault/secrets', { name: 'BOT', value: telegram.token })
const channel = await request('POST', '/v1/channels', {
	type: 'chat_a',
	bot_token_ref: bot.id,
	config: { api_root: telegram.url },
})
const person = telegram.person(4101, 'Grace')
await request('POST', '/v1/channels/pair', { agent_id: 'ada', channel_id: channel.id, external_chat_id: '4101' })
telegram.say(person, 'Hello from the chat.')
await telegram.waitFor(({ text }) => text.includes('Hello from the chat.'))
const backup = await request('POST', '/v1/backups')

// Runs that are active when the program is killed: one after its first step, one queued behind it, one with a question.
const started = await request('POST', '/v1/agents/cleo/runs', { prompt: 'Take two steps.' })
;(await model.called('Take two steps.')).callTool('memory_stm_write', '{"key": "step", "value": 1}')
await model.called('Take two steps.', 2)
const waiting = await request('POST', '/v1/agents/cleo/runs', { prompt: 'Wait your turn.' })
const asking = await request('POST', '/v1/agents/dora/runs', {
	prompt:
		'/tool ask {"question": "Which colour?", "options": ["red", "blue"]}\n/tool memory.stm_write {"key": "asked", "value": true}',
})
const [question] = await eventually(
	() => request('GET', '/v1/agents/dora/questions'),
	(found: Answer) => found.length > 0,
)

const reads = [
	'/v1/agents',
	'/v1/agents/ada',
	'/v1/agents/ada/history',
	'/v1/agents/ada/memory',
	'/v1/agents/ada/skills',
	`/v1/agents/ada/skills/${sum.id}`,
	'/v1/agents/ada/webhooks',
	'/v1/agents/ada/webhooks/deploys/deliveries',
	'/v1/agents/ada/heartbeats',
	'/v1/agents/ada/runs',
	'/v1/agents/dora/questions',
	'/v1/vault/secrets',
	'/v1/vault/grants?agent_id=ada',
	'/v1/auth/tokens',
	`/v1/channels/${channel.id}/bindings`,
]
const facts: Facts = {
	written_at: new Date().toISOString(),
	reads: Object.fromEntries(await Promise.all(reads.map(async (path) => [path, await request('GET', path)] as const))),
	searches: Object.fromEntries(
		await Promise.all(
			['When are invoices due?', 'Schlüssel', 'tea'].map(async (query) => {
				const found = await request('GET', `/v1/agents/ada/memory/search?q=${encodeURIComponent(query)}`)
				return [query, found] as const
			}),
		),
	),
	events: (await request('GET', '/v1/audit?limit=500')).events,
	mcp: mcp.id,
	token: token.token,
	webhook: { path: pathname, secret: webhook.secret },
	chat: { bot: telegram.token, channel: channel.id, chat: '4101' },
	backup: backup.id,
	runs: { started: started.run_id, waiting: waiting.run_id, asking: asking.run_id },
	question: question.question_id,
}
child.kill('SIGKILL')
await exited
await model.stop()
await telegram.stop()

const folder = mkdtempSync(join(tmpdir(), 'svc-home-'))
execFileSync('cp', ['-R', home, join(folder, 'home')])
for (const name of ['run', 'logs', 'cache']) rmSync(join(folder, 'home', name), { recursive: true, force: true })
writeFileSync(join(folder, 'facts.json'), `${JSON.stringify(facts, null, '\t')}\n`)
const archive = fileURLToPath(new URL(`${version}.tar.gz`, import.meta.url))
execFileSync('tar', ['--owner=0', '--group=0', '--sparse', '-czf', archive, '-C', folder, 'home', 'facts.json'])
for (const path of [home, folder]) rmSync(path, { recursive: true, force: true })
process.stdout.write(`${archive}\n`)
