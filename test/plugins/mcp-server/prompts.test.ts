/** Skills as prompts, completions of arguments, and the client's log, by the official client. */
import {
	LoggingMessageNotificationSchema,
	PromptListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { LoggingMessageNotification } from '@modelcontextprotocol/sdk/types.js'
import t from 'tap'
import { openClientLog } from '../../../plugins/mcp-server/client-log.ts'
import { addToken } from '../../support/add.ts'
import { startGateway } from '../../support/gateway.ts'
import { addSkill, installSkill, programText, skillText } from '../../support/skills.ts'
import { eventually } from '../../support/wait.ts'
import { config, connect } from './client.ts'

const gateway = await startGateway({
	config: `${config}default_provider: plain\nproviders: {plain: {kind: offline}}\n`,
})
t.teardown(() => gateway.stop())
const scale = `parameters:
  - {name: unit, type: string, required: true, enum: [metre, mile], description: Of lengths.}
  - {name: exact, type: boolean, default: false}
  - {name: digits, type: integer}`
for (const name of ['ada', 'bea', 'cleo']) await gateway.request('POST', '/v1/agents', { body: { name } })
await addSkill(gateway, 'ada', skillText('polite', 'Say please.'))
await addSkill(gateway, 'ada', skillText('scale', 'Convert lengths.', scale))
await addSkill(
	gateway,
	'cleo',
	programText('double', 'return args.n * 2', 'parameters: [{name: n, type: number, required: true}]'),
)
await installSkill(gateway, 'cleo', skillText('unreviewed', 'Nobody has approved this.'))

const textOf = ({ messages }: { messages: { content: { type: string; text?: string } }[] }) => messages[0]?.content.text

void t.test('active skills are prompts', async (t) => {
	const { client } = await connect(t, gateway)
	t.match(client.getServerCapabilities(), { prompts: { listChanged: true }, completions: {}, logging: {} })
	const { prompts, nextCursor } = await client.listPrompts()
	t.equal(nextCursor, undefined)
	t.same(
		prompts.map(({ name, arguments: args }) => [name, args?.map((one) => one.name)]),
		[
			['ada/polite', ['task']],
			['ada/scale', ['unit', 'exact', 'digits']],
			['cleo/double', ['n']],
		],
	)
	t.match(prompts[1], { description: 'Does scale.', arguments: [{ required: true }, { description: /JSON: boolean/ }] })

	t.match(textOf(await client.getPrompt({ name: 'ada/polite' })), /Say please\.$/)
	t.match(textOf(await client.getPrompt({ name: 'ada/polite', arguments: { task: 'greet' } })), /The task: greet/)
	const given = { unit: 'mile', digits: '3' }
	t.match(
		textOf(await client.getPrompt({ name: 'ada/scale', arguments: given })),
		/\{"unit":"mile","exact":false,"digits":3\}.*Convert lengths\./s,
	)
	const double = textOf(await client.getPrompt({ name: 'cleo/double', arguments: { n: '4' } }))
	t.match(double, /call run_agent with agent "cleo".*\{"n":4\}/s)
	t.notMatch(double, /return args/)
})

void t.test('unknown prompts and invalid arguments are refused with what to change', async (t) => {
	const { client } = await connect(t, gateway)
	const refused = (params: Parameters<typeof client.getPrompt>[0], message: RegExp) =>
		t.rejects(client.getPrompt(params), { code: -32602, message })
	await refused({ name: 'ada/nothing' }, /there is no prompt "ada\/nothing"; prompts\/list names them/)
	await refused({ name: 'nobody/polite' }, /there is no prompt/)
	await refused({ name: 'cleo/unreviewed' }, /there is no prompt/)
	await refused({ name: 'ada/scale' }, /"unit" is missing/)
	await refused({ name: 'ada/scale', arguments: { unit: 'yard' } }, /must be one of metre, mile/)
	await refused(
		{ name: 'ada/scale', arguments: { unit: 'mile', digits: 'many' } },
		/"digits" must be JSON of the type integer/,
	)
	await refused({ name: 'ada/polite', arguments: { other: 'x' } }, /"other" is not a parameter/)
	await t.rejects(client.listPrompts({ cursor: 'bad' }), { code: -32602, message: /nextCursor of the previous page/ })
})

void t.test('arguments are completed', async (t) => {
	const { client } = await connect(t, gateway)
	const reply = await gateway.request('POST', '/v1/agents/bea/runs', { body: { prompt: 'hi', conversation: 'trip' } })
	const values = async (
		ref: Parameters<typeof client.complete>[0]['ref'],
		name: string,
		value: string,
		args: Record<string, string> = {},
	) => (await client.complete({ ref, argument: { name, value }, context: { arguments: args } })).completion.values
	const skill = { type: 'ref/prompt' as const, name: 'ada/scale' }
	t.same(await values(skill, 'unit', 'm'), ['metre', 'mile'])
	t.same(await values(skill, 'unit', 'mi'), ['mile'])
	t.same(await values(skill, 'exact', ''), ['true', 'false'])
	t.same(await values(skill, 'digits', ''), [])
	const history = { type: 'ref/resource' as const, uri: 'svc://agents/{name}/history{?conversation}' }
	t.same(await values(history, 'name', ''), ['ada', 'bea', 'cleo'])
	t.same(await values(history, 'name', 'b'), ['bea'])
	t.match(await values(history, 'conversation', '', { name: 'bea' }), [/trip/])
	t.same(await values(history, 'conversation', '', { name: 'nobody' }), [])
	const run = { type: 'ref/resource' as const, uri: 'svc://runs/{run_id}' }
	const { run_id } = reply.body
	t.ok((await values(run, 'run_id', run_id.slice(0, 30))).includes(run_id))
	t.same(await values(run, 'name', ''), [])
	await t.rejects(values({ type: 'ref/prompt', name: 'ada/none' }, 'x', ''), { code: -32602 })
	await t.rejects(values({ type: 'ref/resource', uri: 'file:///{x}' }, 'x', ''), {
		code: -32602,
		message: /there is no such template/,
	})
})

void t.test('a client gets the log of its runs, at its level', async (t) => {
	const { client, call } = await connect(t, gateway)
	const log: LoggingMessageNotification['params'][] = []
	client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void log.push(params))
	const run = async (prompt: string) => (await call('run_agent', { agent: 'bea', prompt })).structuredContent.run_id
	const failing = '/tool memory.stm_read {"secret-argument": 1}'
	const first = await run(failing)
	t.match(log, [
		{ level: 'warning', logger: 'runs', data: { run_id: first, agent: 'bea', message: /^memory\.stm_read failed: / } },
	])
	t.equal(log.length, 1, 'only problems until it sets a level')

	await client.setLoggingLevel('debug')
	await run('/tool memory.stm_read {}')
	const messages = log.slice(1).map(({ level, data }) => [level, (data as { message: string }).message])
	t.strictSame(
		messages.filter(([, message]) => message !== 'thinking'),
		[
			['info', 'calling memory.stm_read'],
			['info', 'completed'],
		],
	)
	t.ok(messages.some(([level]) => level === 'debug'))
	t.notMatch(JSON.stringify(log), /secret-argument/)

	await client.setLoggingLevel('emergency')
	const count = log.length
	await run(failing)
	t.equal(log.length, count)
	await t.rejects(client.setLoggingLevel('loud' as 'debug'), { code: -32602 })
})

void t.test('a session does not offer what its token does not allow', async (t) => {
	const reader = await connect(t, gateway, { token: (await addToken(gateway, ['agents:read'])).token })
	const { prompts, completions, logging } = reader.client.getServerCapabilities() ?? {}
	t.match([prompts, completions, logging], [{}, {}, undefined])
	t.same(
		(await reader.client.listPrompts()).prompts.map(({ name }) => name),
		['ada/polite', 'ada/scale'],
		'no program, which requires a run',
	)
	await t.rejects(reader.client.getPrompt({ name: 'cleo/double', arguments: { n: '1' } }), { code: -32602 })
	const runner = await connect(t, gateway, { token: (await addToken(gateway, ['runs:write'])).token })
	const offered = runner.client.getServerCapabilities() ?? {}
	t.strictSame(
		[offered.prompts, offered.completions, offered.resources, offered.logging],
		[undefined, undefined, undefined, {}],
	)
})

void t.test('the log is limited, and counts omitted messages', async (t) => {
	let now = 0
	const log = openClientLog(() => now)
	t.equal(log.admit('info'), undefined)
	const admitted = Array.from({ length: 150 }, () => log.admit('error')).filter((one) => one !== undefined)
	t.equal(admitted.length, 100)
	now += 10_000
	t.same(log.admit('warning'), { omitted: 50 })
	t.same(log.admit('warning'), { omitted: 0 })
})

void t.test('prompts are listed in pages, and changes are announced', async (t) => {
	const names = ['dora', 'emil', 'finn']
	await Promise.all(
		names.map(async (name) => {
			await gateway.request('POST', '/v1/agents', { body: { name } })
			for (let n = 10; n < 28; n++) await addSkill(gateway, name, skillText(`s-${n}`, 'Do it.'))
		}),
	)
	const { client } = await connect(t, gateway)
	let changes = 0
	client.setNotificationHandler(PromptListChangedNotificationSchema, () => void changes++)
	const found: string[] = []
	let cursor: string | undefined
	let pages = 0
	do {
		const page = await client.listPrompts(cursor === undefined ? {} : { cursor })
		found.push(...page.prompts.map(({ name }) => name))
		cursor = page.nextCursor
		pages++
	} while (cursor !== undefined)
	t.equal(pages, 2)
	t.same(
		found.slice(3),
		names.flatMap((name) => Array.from({ length: 18 }, (_, n) => `${name}/s-${n + 10}`)),
	)

	// The client opens its stream after the initialization, and gets nothing from before.
	let n = 40
	await eventually(
		async () => {
			await addSkill(gateway, 'dora', skillText(`s-${n++}`, 'Do it.'))
			return changes
		},
		(count) => count > 0,
	)
	t.ok((await client.listPrompts()).prompts.some(({ name }) => name === 'dora/s-40'))
})
