/**
 * Passes a secret through everything that reports, stores or sends data. Afterwards no part of it may be in the data folder, the logs,
 * a response, an event or a request to the model, except where a grant reveals it.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { addSecret } from '../support/add.ts'
import { makeHome, send } from '../support/gateway.ts'
import type { Answer, Reply, RequestOptions } from '../support/gateway.ts'
import { servers } from '../support/mcp.ts'
import { dataFolder } from '../support/nats.ts'
import { startModelServer } from '../support/model-server.ts'
import type { ModelServer } from '../support/model-server.ts'
import { spawnGateway } from '../support/process.ts'
import type { GatewayProcess } from '../support/process.ts'
import { follow } from '../support/runs.ts'
import type { Followed } from '../support/runs.ts'
import { addSkill } from '../support/skills.ts'

/** The part of the value that is the same in every unencoded form. */
const core = `Canary${randomBytes(12).toString('hex')}`
const value = `s&k/"${core}\\é +1`
/** The value of another secret, for places that accept only letters and digits, such as names. */
const simple = `Simple${randomBytes(12).toString('hex')}`
const forms: Record<string, string> = {
	plain: value,
	base64: Buffer.from(value).toString('base64'),
	'base64 within a text': Buffer.from(`user:${value}:more`).toString('base64'),
	base64url: Buffer.from(`a${value}b`).toString('base64url'),
	hex: Buffer.from(value).toString('hex'),
	'uppercase hex': Buffer.from(value).toString('hex').toUpperCase(),
	'URL-encoded': encodeURIComponent(value),
	'form data': new URLSearchParams({ value }).toString(),
	JSON: JSON.stringify({ value: JSON.stringify({ value }) }),
	'JSON by Go': String.raw`s\u0026k/\"${core}\\é +1`,
	'JSON by PHP': String.raw`s&k\/\"${core}\\\u00e9 +1`,
	'JSON by .NET': String.raw`s\u0026k/\u0022${core}\\\u00E9 \u002B1`,
}
const all = [...Object.values(forms), simple].join(' , ')

/** The byte sequences to search for, computed independently of the gateway's code. */
const needles = Object.entries({
	// Half of each value, since a text may be truncated.
	...needlesOf('', core.slice(0, 18)),
	...needlesOf('second secret, ', simple.slice(0, 18)),
})

function needlesOf(label: string, text: string): Record<string, Buffer> {
	const found: Record<string, string> = {
		plain: text,
		hex: Buffer.from(text).toString('hex'),
		'uppercase hex': Buffer.from(text).toString('hex').toUpperCase(),
		'every byte URL-encoded': text.replace(/./g, (character) => `%${character.charCodeAt(0).toString(16)}`),
	}
	for (const offset of [0, 1, 2]) {
		const encoded = Buffer.from(`${'x'.repeat(offset)}${text}yyy`).toString('base64')
		// Without the characters that also encode bits of adjacent bytes.
		found[`base64 at ${offset}`] = encoded.slice(
			offset === 0 ? 0 : offset + 1,
			Math.floor(((offset + text.length) * 4) / 3),
		)
	}
	return Object.fromEntries(Object.entries(found).map(([name, form]) => [label + name, Buffer.from(form)]))
}

function leaks(bytes: Buffer | string): string[] {
	const text = Buffer.from(bytes as string)
	return needles.flatMap(([name, needle]) => {
		const at = text.indexOf(needle)
		return at < 0 ? [] : [`${name}: …${text.subarray(Math.max(0, at - 80), at).toString('latin1')}<here>`]
	})
}

interface World {
	home: string
	model: ModelServer
	gateway: GatewayProcess
	/** All responses of the gateway, each with its request. */
	responses: { to: string; text: string; sent: string }[]
	request(method: string, path: string, options?: RequestOptions): Promise<Reply<Answer>>
	/** Standard error and standard output so far. */
	logs(): Buffer
	restart(): Promise<void>
	/** Asserts that a secret is nowhere. `mayContain`: the requests to the model in which a secret is allowed. */
	assertNoLeaks(t: Test, mayContain?: (body: Answer) => boolean): Promise<void>
}

async function openWorld(t: Test): Promise<World> {
	const model = await startModelServer()
	t.teardown(() => model.stop())
	const home = makeHome({
		config: `providers:\n  main:\n    kind: openai\n    base_url: ${model.url}\n    api_key: sk-test\n    model: some-model\n    embedding_model: some-embedder\n`,
	})
	t.teardown(() => rmSync(home, { recursive: true, force: true }))
	const written: Buffer[] = []
	const start = async (): Promise<GatewayProcess> => {
		const gateway = await spawnGateway(home, { SVC_LOG_LEVEL: 'trace' })
		const { stderr, stdout } = gateway.child
		for (const output of [stderr, stdout]) output?.on('data', (data: Buffer) => written.push(data))
		return gateway
	}
	const world: World = {
		home,
		model,
		gateway: await start(),
		responses: [],
		async request(method, path, options) {
			const reply = await send(world.gateway.url + path, method, options)
			const text = JSON.stringify([reply.body, ...reply.headers]) + String(reply.body)
			// A caller may get its own input back unredacted.
			const sent = decodeURIComponent(path) + JSON.stringify(options?.body ?? '') + String(options?.body)
			world.responses.push({ to: `${method} ${path}`, text, sent })
			return reply
		},
		logs: () => Buffer.concat(written),
		async restart() {
			await world.gateway.kill()
			world.gateway = await start()
		},
		async assertNoLeaks(t, mayContain = () => false) {
			t.strictSame(leaks(world.logs()), [], 'the logs')
			for (const { to, text, sent } of world.responses)
				if (leaks(sent).length === 0) t.strictSame(leaks(text), [], `the response to ${to.slice(0, 60)}`)
			for (const { body } of model.mock.getRequests()) {
				if (!mayContain(body)) t.strictSame(leaks(JSON.stringify(body)), [], 'a request to the model')
			}
			const data = await dataFolder(home)
			const files = [...new Set([home, data])].flatMap((folder) =>
				readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()),
			)
			t.ok(
				files.some((file) => file.parentPath.startsWith(data)),
				'the data folder has files',
			)
			for (const file of files) {
				const path = join(file.parentPath, file.name)
				t.strictSame(leaks(readFileSync(path)), [], path.replace(home, ''))
			}
		},
	}
	t.teardown(() => world.gateway.kill())
	return world
}

/** An agent with a grant for both secrets. */
async function openAgent(t: Test, world: World, name: string, reveal: boolean): Promise<Followed> {
	const agent = await follow(t, { url: world.gateway.url, request: world.request }, name)
	await addSecret(world, name, 'CANARY', value, { reveal })
	await addSecret(world, name, 'SIMPLE', simple, { reveal })
	return agent
}

const readBoth = ['CANARY', 'SIMPLE'].map((name) => ({ name: 'vault_read', arguments: { name } }))

void t.test('the search for leaks finds the encoded forms', async (t) => {
	for (const text of [all, JSON.stringify(all), `${'x'.repeat(7)}${all}`]) {
		const found = leaks(text).map((one) => one.split(':')[0])
		for (const name of [
			'plain',
			'hex',
			'uppercase hex',
			'base64 at 0',
			'base64 at 1',
			'base64 at 2',
			'second secret, plain',
		])
			t.ok(found.includes(name), name)
	}
})

void t.test('a secret that an agent reads and uses appears nowhere', async (t) => {
	const world = await openWorld(t)
	const { model, request } = world
	model.on('read the secret', { tools: readBoth }, 'I have it.')
	const ada = await openAgent(t, world, 'ada', false)
	await ada.complete('read the secret')
	t.match(JSON.stringify(model.requests('read the secret')), /\{\{secret:CANARY\}\}/, 'the model has a handle')

	// Requests of an operator.
	await request('PATCH', '/v1/agents/ada', { body: { persona: `You know ${all}`, config: { note: all, [value]: 1 } } })
	await request('POST', '/v1/agents', { body: { name: `no ${value}`, [value]: all } })
	await request('GET', `/v1/agents/${encodeURIComponent(value)}`)
	await request('GET', `/v1/audit?cursor=${encodeURIComponent(value)}`)
	await request('POST', '/v1/agents/ada/runs', { body: `{"prompt": ${value}` })
	await request('GET', `/v1/nothing/${encodeURIComponent(forms.base64 as string)}`)

	// Output of the model, in small chunks.
	for (const [name, form] of Object.entries(forms)) {
		model.on(`say it as ${name}.`, { text: `It is ${form}, is it not?`, chunkSize: 3 })
		await ada.complete(`say it as ${name}. I mean ${form}`)
	}
	model.on('fail with it', { status: 400, message: `bad request: ${all}` })
	await ada.ended(await ada.start(`fail with it: ${all}`))
	model.on('break off', { text: `It is ${value}, is it not?`, chunkSize: 5, cutAfterChunks: 4 }, 'Well.')
	await ada.complete('break off')

	// Arguments, results and errors of tools.
	const use = async (prompt: string, tool: string, args: object | string): Promise<string> => {
		model.on(prompt, { tools: [{ name: tool, arguments: args }] }, `Done with ${value}.`)
		return ada.complete(prompt)
	}
	await use('write a note', 'memory_stm_write', { key: simple, value: { [value]: all } })
	await use('read the notes', 'memory_stm_read', {})
	await use('store a memory', 'memory_store', { content: `remember ${all}`, tags: [simple] })
	await use('recall it', 'memory_recall', { query: value })
	await use('an unknown tool', `tool_${simple}`, { all })
	await use('arguments that are no JSON', 'memory_store', `{"content": ${value}`)
	await use('arguments that are wrong', 'memory_store', { [value]: all })
	await use('more than an event carries', 'memory_stm_write', {
		key: 'long',
		value: `${'x'.repeat(16 * 1024 - 60)}${value}`,
	})
	await request('GET', `/v1/agents/ada/memory/search?q=${encodeURIComponent(`remember ${value}`)}`)

	model.on(
		'ask me',
		{ tools: [{ name: 'ask', arguments: { question: `Is it ${all}?`, options: [value] } }] },
		`So ${all}`,
	)
	const asking = await ada.start('ask me')
	const { payload } = await ada.waitFor(asking, 'run.paused')
	await ada.call('questions')
	await ada.read(asking)
	await ada.call(`ask-responses/${String(payload.question_id)}`, { answer: `Yes, ${all}` })
	t.equal((await ada.ended(asking)).event_type, 'run.completed')

	// Skills and MCP servers, which get the value itself and return it.
	const skill = `---
name: echo it
description: Answers with the secret in many forms.
runtime: javascript
permissions: { secrets: [CANARY], primitives: [memory.stm_write] }
parameters:
  - { name: text, type: string, required: true, description: Any text. }
---
\`\`\`js
export default async ({ text }, svc) => {
	const value = await svc.secret('CANARY')
	svc.log('the value is', value)
	await svc.primitive('memory.stm_write', { key: 'from the skill', value })
	if (text.startsWith('fail')) throw new Error('cannot use ' + value)
	return { size: text.length, text, value, list: [encodeURIComponent(value)] }
}
\`\`\`
`
	await addSkill(world, 'ada', skill)
	await use('run the skill', 'skill_echo-it', { text: 'with {{secret:CANARY}}' })
	await use('what the model itself wrote', 'skill_echo-it', { text: value })
	await use('fail in the skill', 'skill_echo-it', { text: 'fail with {{secret:CANARY}}' })
	const server = await request('POST', '/v1/agents/ada/mcp', {
		body: {
			name: 'every',
			transport: 'stdio',
			command: process.execPath,
			args: [servers.everything],
			env: { KEY: { secret: 'CANARY' } },
		},
	})
	t.equal(server.status, 201)
	await ada.stream.waitFor('mcp.connected')
	await use('echo by MCP', 'mcp__every__echo', { message: 'it is {{secret:CANARY}}' })
	await use('the environment of the server', 'mcp__every__get-env', {})

	// An idempotency key, and the prompt of a heartbeat.
	const headers = { 'idempotency-key': value }
	model.on('once only', 'Yes.')
	const [first, second] = [
		await request('POST', '/v1/agents/ada/runs', { body: { prompt: `once only ${all}` }, headers }),
		await request('POST', '/v1/agents/ada/runs', { body: { prompt: `once only ${all}` }, headers }),
	]
	t.equal(first.body.run_id, second.body.run_id, 'an idempotency key that contains the secret works')
	await ada.ended(first.body.run_id)
	await request('POST', '/v1/agents/ada/heartbeats', { body: { every: '24h', prompt: all } })

	// Responses with earlier data.
	for (const path of ['', '/history', '/runs?limit=500', '/questions', '/skills', '/mcp', '/heartbeats', '/webhooks'])
		await request('GET', `/v1/agents/ada${path}`)
	for (const path of [
		'/v1/audit?limit=500',
		'/v1/agents',
		'/v1/vault/secrets',
		'/v1/vault/grants',
		'/v1/plugins',
		'/metrics',
	])
		await request('GET', path)
	await world.assertNoLeaks(t)
	t.strictSame(leaks(JSON.stringify(ada.stream.events)), [], 'the event stream')
	const embedded = model.mock.getRequests().filter(({ path }) => path.endsWith('/embeddings'))
	t.match(JSON.stringify(embedded), /remember \[redacted:CANARY\]/, 'texts to embed are redacted, too')
	const results = JSON.stringify(
		ada.stream.events.filter(({ event_type }) => /result|completed|failed/.test(event_type)),
	)
	for (const [source, pattern] of Object.entries({
		'a note': /notes.{1,40}\[redacted:SIMPLE\].{1,40}\[redacted:CANARY\]/,
		'a skill': /"value.{1,20}\[redacted:CANARY\]/,
		'a skill whose argument the model wrote': new RegExp(String.raw`size.{1,5}${value.length},`),
		'a skill that fails': /cannot use \[redacted:CANARY\]/,
		'an MCP server': /Echo: it is \[redacted:CANARY\]/,
		"an MCP server's environment": /KEY.{1,20}\[redacted:CANARY\]/,
	}))
		t.match(results, pattern, `${source} had the value`)
	const redactions = ada.stream.events.filter((event) => event.event_type === 'security.redacted')
	t.ok(
		redactions.every(
			({ payload }) => ['CANARY', 'SIMPLE'].includes(String(payload.secret)) && (payload.count as number) > 0,
		),
	)
	const sinks = new Set(redactions.map(({ payload }) => payload.sink))
	for (const sink of ['event', 'record', 'model', 'stream'])
		t.ok(sinks.has(sink), `security.redacted reports the sink ${sink}`)

	// After a crash the secret is redacted before an agent reads it.
	await world.restart()
	const again = await follow(t, { url: world.gateway.url, request: world.request }, 'ada')
	await again.complete(`say it as plain. I mean ${all}`)
	await request('GET', '/v1/agents/ada/history')
	await world.gateway.end()
	await world.assertNoLeaks(t)
	t.strictSame(leaks(JSON.stringify(again.stream.events)), [])
	t.match(world.logs().toString(), /\[redacted:CANARY\]/, 'the value reached the logs')
})

void t.test('a grant with reveal gives the value to the model only', async (t) => {
	const world = await openWorld(t)
	const { model } = world
	model.on(
		'read the secret',
		{ tools: readBoth },
		{
			text: `It is ${value}, I see.`,
			tools: [{ name: 'memory_stm_write', arguments: { key: 'k', value: all } }],
			chunkSize: 3,
		},
		{ text: `I wrote ${all}`, chunkSize: 4 },
	)
	const bob = await openAgent(t, world, 'bob', true)
	const run_id = await bob.complete('read the secret')
	const [first, second, third] = model.requests('read the secret')
	t.strictSame(leaks(JSON.stringify(first)), [])
	const result = second?.messages.find((message) => message.role === 'tool')
	t.strictSame(JSON.parse(String(result?.content)), { name: 'CANARY', value })
	t.match(JSON.stringify(third), core, 'also in its own earlier output')

	model.on('and what was it', 'I forgot.')
	await bob.complete('and what was it')
	t.match(JSON.stringify(model.requests('and what was it')), /\[redacted:CANARY\]/, 'the history is redacted')

	const eve = await follow(t, { url: world.gateway.url, request: world.request }, 'eve')
	model.on('may I see', 'No.')
	await eve.complete('may I see it')
	for (const path of ['/history', '/runs']) await world.request('GET', `/v1/agents/bob${path}`)
	await world.request('GET', `/v1/runs/${run_id}`)
	await world.request('GET', '/v1/audit?limit=500')
	await world.gateway.end()
	await world.assertNoLeaks(t, (body) => [second, third].includes(body))
	t.strictSame(leaks(JSON.stringify([bob.stream.events, eve.stream.events])), [])
})
