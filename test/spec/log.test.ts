/** Log lines about failures in the background. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeHome, send } from '../support/gateway.ts'
import type { Answer, TestGateway } from '../support/gateway.ts'
import { addChannel } from '../support/loop.ts'
import { servers, stdio, until } from '../support/mcp.ts'
import { startModelServer } from '../support/model-server.ts'
import { spawnGateway } from '../support/process.ts'
import { addSkill, programText } from '../support/skills.ts'
import { eventually } from '../support/wait.ts'

const settings = 'skills: {cpu_s: 1, wall_time_s: 600}\n'
const quiet = `export default {
	name: 'quiet',
	needs: ['channels'],
	config: (joi) => joi.object({ note: joi.string() }),
	start: (ctx) => ctx.extend('channel', {
		type: 'quiet',
		label: 'Quiet',
		can: { formats: [{ markup: 'plain', max_length: 100 }] },
		connect: () => ({ send() {}, close() {} }),
	}),
}`
const model = await startModelServer()
t.teardown(() => model.stop())
const providers = `
providers:
  busy: {kind: openai, base_url: "${model.url}", api_key: key, model: small-1}
  offline: {kind: offline}
default_provider: offline
`
const home = makeHome(
	{ config: `${providers}${settings}plugins: {quiet: true}\n`, files: { 'plugins/quiet/index.js': quiet } },
	t,
)
const gateway = await spawnGateway(home, { SVC_LOG_LEVEL: 'info' })
t.teardown(() => gateway.end())
const request: TestGateway['request'] = (method, path, options) => send(gateway.url + path, method, options)
const post = async (path: string, body: object): Promise<Answer> => (await request('POST', path, { body })).body
await post('/v1/agents', { name: 'ada' })

const lines = (field: string, value: string): Answer[] =>
	gateway
		.errors()
		.split('\n')
		.filter((line) => line.endsWith('}'))
		.map((line) => JSON.parse(line) as Answer)
		.filter((line) => line[field] === value)
/** Waits for such lines: they may be written after the response. */
const logged = (field: string, value: string): Promise<Answer[]> =>
	eventually(
		() => lines(field, value),
		({ length }) => length > 0,
	)

const WARN = 40
const INFO = 30

void t.test('logs that an MCP server is connected, and once per state why it is not', async (t) => {
	await post('/v1/agents/ada/mcp', stdio('good', servers.fixture))
	const [connected, ...more] = await logged('server', 'good')
	t.match(connected, { level: INFO, agent: 'ada', msg: 'an MCP server is connected' })
	t.ok(connected.tools > 0)
	t.strictSame(more, [])

	const { id } = await post('/v1/agents/ada/mcp', stdio('broken', servers.fixture, '--exit'))
	await until({ request }, 'ada', id, ({ failures }) => failures > 1)
	const [failed, ...again] = await logged('server', 'broken')
	t.match(failed, { level: WARN, agent: 'ada', msg: /^an MCP server is not connected: .*exit code 3/ })
	t.strictSame(again, [], 'not at every attempt')

	await post('/v1/agents/ada/mcp', { name: 'missing', transport: 'stdio', command: 'no-such-program-anywhere' })
	t.match(await logged('server', 'missing'), [{ level: WARN, status: 'error', msg: /there is no such program/ }])
})

void t.test('logs a skill call that a limit ended', async (t) => {
	await addSkill({ request } as TestGateway, 'ada', programText('busy', 'for (;;);'))
	const { run_id } = await post('/v1/agents/ada/runs', { prompt: '/tool skill_busy {}' })
	await eventually(
		async () => (await request('GET', `/v1/runs/${run_id}`)).body.status,
		(status) => status === 'completed',
	)
	const [line, ...more] = await logged('skill', 'busy')
	t.match(line, { level: WARN, agent: 'ada', code: 'sandbox_timeout', msg: /more than 1 s \(skills\.cpu_s\)$/ })
	t.strictSame(more, [])
})

void t.test('logs that a channel reconnects after a change of its plugin, not a lost connection', async (t) => {
	const id = await addChannel({ request } as TestGateway, 'quiet-token', { type: 'quiet' })
	await logged('channel_id', id)
	writeFileSync(join(home, 'config/gateway.yaml'), `${providers}${settings}plugins: {quiet: {note: changed}}\n`)
	const ofChannel = await eventually(
		() => lines('channel_id', id),
		({ length }) => length > 2,
	)
	t.match(ofChannel, [
		{ level: INFO, msg: 'a channel is connected' },
		{ level: INFO, msg: 'a channel connects again after a change' },
		{ level: INFO, msg: 'a channel is connected' },
	])
})

void t.test('while a provider is down, lines about the attempts of its runs are limited', async (t) => {
	model.on('is busy', { status: 429, message: 'slow down', retryAfter: 0 })
	const runs = await Promise.all(
		[1, 2, 3, 4, 5].map(async (n) => {
			await post('/v1/agents', { name: `busy-${n}`, config: { provider: 'busy' } })
			return post(`/v1/agents/busy-${n}/runs`, { prompt: 'is busy' })
		}),
	)
	for (const { run_id } of runs)
		await eventually(
			() => lines('run_id', run_id),
			(all) => all.some(({ msg }) => msg.startsWith('a run failed')),
		)
	t.equal(lines('msg', 'model.retry').length, 10, 'of 15')
	t.match(lines('msg', 'model.retry')[0], {
		level: WARN,
		provider: 'busy',
		model: 'small-1',
		code: 'model_rate_limited',
	})
})
