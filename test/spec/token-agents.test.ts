/** Tokens for some agents: every operation of the API, and access to events, runs and models, over MCP and the chat API. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t from 'tap'
import { WebSocket } from 'ws'
import { startGateway } from '../support/gateway.ts'
import type { Answer, Reply, TestGateway } from '../support/gateway.ts'
import { operationsOf, urlOf } from '../support/openapi.ts'
import type { Described, Entry } from '../support/openapi.ts'
import { inOrder, steps } from '../support/openapi-steps.ts'
import type { Made, Step } from '../support/openapi-steps.ts'
import { openStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'

const config = 'plugins: {openai-api: true, mcp-server: true}\n'

async function tokenFor(gateway: TestGateway, body: object): Promise<string> {
	const made = await gateway.request('POST', '/v1/auth/tokens', { body })
	if (made.status !== 201) throw new Error(JSON.stringify(made.body))
	return made.body.token as string
}

/** Operations whose handlers omit or refuse other agents, with the status. All others are refused before their handlers. */
const checked: Record<string, number> = {
	createAgent: 403,
	listAgents: 200,
	listModels: 200,
	getModel: 404,
	createChatCompletion: 404,
	createEmbeddings: 404,
	createResponse: 404,
	getResponse: 404,
	deleteResponse: 404,
	listResponseInput: 404,
	cancelResponse: 404,
	listAllRuns: 200,
	getRun: 404,
	cancelRun: 404,
	retryRun: 404,
	listSteps: 404,
	listStepRequests: 404,
	listEvents: 200,
	getUsage: 404,
	getCaller: 200,
	sendMcpMessage: 404,
	openMcpStream: 404,
	endMcpSession: 404,
}

void t.test('no operation reads, changes or shows another agent', async (t) => {
	const gateway = await startGateway({ config })
	t.teardown(() => gateway.stop())
	const token = await tokenFor(gateway, { scopes: ['*'], agents: ['mine-*'] })
	const document = (await gateway.request<Described>('GET', '/v1/openapi.json')).body
	const made: Made = new Map()
	let refused = 0
	for (const entry of inOrder(operationsOf(document))) {
		const { operation, path, method } = entry
		const id = operation.operationId
		// Every token may open it; its events are tested below.
		if (id === 'streamEvents') continue
		const isPublic = operation.security.every((one) => Object.keys(one).length === 0)
		const example = operation.requestBody?.content['application/json']?.example
		const step = (await steps[id]?.({ gateway, made, body: example })) ?? {}
		const mine = await send(gateway, entry, { ...(example !== undefined && { body: example }), ...step }, token)
		if (!isPublic) {
			const { agent, other } = namesIn(entry, step)
			const expected = checked[id] ?? (agent === undefined ? 403 : 404)
			t.equal(mine.status, expected, `${id}: ${method} ${path} ${mine.text}`)
			if (mine.status === 200) t.notMatch(mine.text, /\b(ada|bob|carol|dora|erin)\b/, id)
			else refused++
			if (agent !== undefined) {
				const params = { ...step.params, [agent]: 'nobody' }
				const none = await send(gateway, entry, { body: example, ...step, params }, token)
				t.equal(none.text.replaceAll('nobody', other), mine.text, `${id}: as an agent that does not exist`)
				t.equal(none.status, mine.status)
			}
		}
		if ('101' in operation.responses) continue
		const reply = await send(gateway, entry, { ...(example !== undefined && { body: example }), ...step })
		if (reply.isJson && reply.status < 300) made.set(id, JSON.parse(reply.text))
	}
	t.ok(refused > 80, `${refused} operations were refused`)
})

interface RawReply {
	status: number
	text: string
	isJson: boolean
}

/** Without a token: as a local caller, which has every scope. */
async function send(gateway: TestGateway, entry: Entry, step: Step, token?: string): Promise<RawReply> {
	const { method, path, operation, server } = entry
	const { params = {}, query = {}, headers = {} } = step
	const given = { path: { ...params }, query: { ...query }, header: { ...headers } }
	for (const { name, in: where, example } of operation.parameters ?? [])
		if (example !== undefined) given[where][name] ??= String(example)
	const url = new URL(
		path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(given.path[name] ?? '')),
		server ? urlOf(server) : gateway.url,
	)
	for (const [name, value] of Object.entries(given.query)) url.searchParams.set(name, value)
	const [type] = Object.keys(operation.requestBody?.content ?? {})
	const abort = new AbortController()
	const response = await fetch(url, {
		method: method.toUpperCase(),
		headers: {
			...given.header,
			...(type && { 'content-type': type }),
			...(token !== undefined && { authorization: `Bearer ${token}` }),
		},
		...(type && { body: type === 'application/json' ? JSON.stringify(step.body) : String(step.body) }),
		signal: abort.signal,
	})
	const media = response.headers.get('content-type') ?? ''
	const isStream = media.includes('event-stream')
	const text = isStream && token === undefined ? '' : await response.text()
	abort.abort()
	return { status: response.status, text, isJson: media.includes('json') }
}

/** The path parameter that names an agent, and the agent. */
function namesIn({ path, operation }: Entry, { params = {} }: Step): { agent?: string; other: string } {
	const agent = /^\/(?:v1|api)\/agents\/\{(\w+)\}/.exec(path)?.[1]
	if (agent === undefined) return { other: '' }
	const example = operation.parameters?.find((one) => one.in === 'path' && one.name === agent)?.example
	return { agent, other: params[agent] ?? String(example) }
}

void t.test('a token for the agents mine-* and ours', async (t) => {
	const gateway = await startGateway({ config })
	t.teardown(() => gateway.stop())
	const token = await tokenFor(gateway, { scopes: ['*'], agents: ['mine-*', 'ours'], label: 'the ticket system' })
	const asLocal = (method: string, path: string, body?: object): Promise<Reply<Answer>> =>
		gateway.request(method, path, { ...(body && { body }) })
	const asToken = (method: string, path: string, body?: object): Promise<Reply<Answer>> =>
		gateway.request(method, path, { token, ...(body && { body }) })
	const finished = async (agent: string): Promise<string> => {
		const { run_id } = (await asLocal('POST', `/v1/agents/${agent}/runs`, { prompt: 'Hello' })).body
		await eventually(async () => (await asLocal('GET', `/v1/runs/${run_id}`)).body.status === 'completed')
		return run_id as string
	}
	for (const name of ['theirs', 'ours']) await asLocal('POST', '/v1/agents', { name })

	await t.test('creates and uses only agents whose names match', async (t) => {
		const refused = await asToken('POST', '/v1/agents', { name: 'other' })
		t.equal(refused.status, 403)
		t.match(refused.body.message, /mine-\* or ours/)
		t.equal((await asToken('POST', '/v1/agents', { name: 'mine-1' })).status, 201)
		t.equal((await asToken('PATCH', '/v1/agents/mine-1', { persona: 'Brief.' })).status, 200)
		t.strictSame(
			(await asToken('GET', '/v1/agents')).body.map(({ name }: Answer) => name),
			['mine-1', 'ours'],
		)
		t.equal((await asToken('DELETE', '/v1/agents/theirs')).status, 404)
		t.equal((await asLocal('GET', '/v1/agents/theirs')).status, 200)
	})

	await t.test('reads its own agents and scopes', async (t) => {
		t.match((await asToken('GET', '/v1/auth/me')).body, {
			kind: 'token',
			label: 'the ticket system',
			scopes: ['*'],
			agents: ['mine-*', 'ours'],
		})
		t.strictSame((await asLocal('GET', '/v1/auth/me')).body, { kind: 'local', scopes: ['*'] })
		const [listed] = (await asLocal('GET', '/v1/auth/tokens')).body.tokens
		t.match(listed, { label: 'the ticket system', agents: ['mine-*', 'ours'], status: 'active' })
	})

	await t.test('lists only runs of its agents, on each page', async (t) => {
		const own: string[] = []
		for (const agent of ['ours', 'theirs', 'ours', 'theirs', 'theirs', 'ours']) {
			const run_id = await finished(agent)
			if (agent === 'ours') own.unshift(run_id)
		}
		const seen: string[] = []
		let cursor: string | null = ''
		while (cursor !== null) {
			const { body } = await asToken('GET', `/v1/runs?limit=2${cursor && `&cursor=${cursor}`}`)
			seen.push(...body.runs.map(({ run_id }: Answer) => run_id))
			t.ok(
				body.next_cursor === null || own.includes(body.next_cursor),
				"the cursor is not the id of another agent's run",
			)
			cursor = body.next_cursor
		}
		t.strictSame(seen, own)
		t.strictSame(
			(await asToken('GET', '/v1/usage?by=agent')).body.rows.map(({ agent_id }: Answer) => agent_id),
			['ours'],
		)
	})

	await t.test('reads no events of other agents or of the gateway', async (t) => {
		const foreign = (await asLocal('GET', '/v1/agents/theirs/runs')).body[0].run_id as string
		const { events } = (await asToken('GET', '/v1/audit?limit=500')).body
		t.strictSame(
			[...new Set<string>(events.map(({ agent_id }: Answer) => agent_id))].toSorted((a, b) => (a < b ? -1 : 1)),
			['mine-1', 'ours'],
		)
		for (const query of [`run_id=${foreign}`, 'agent_id=theirs', `run_id=${foreign}&limit=1`, 'agent_id=nobody'])
			t.strictSame((await asToken('GET', `/v1/audit?${query}`)).body, { events: [], next_cursor: null }, query)
		t.equal((await asToken('GET', '/v1/audit?agent_id=ours&limit=1')).body.events.length, 1)

		const queries: Record<string, string>[] = [
			{},
			{ agent_id: 'theirs' },
			{ run_id: foreign, last_event_id: '0' },
			{ last_event_id: '0' },
		]
		const streams = await Promise.all(queries.map((query) => openStream(gateway.url, { token, query })))
		t.teardown(() => streams.forEach((stream) => stream.close()))
		await finished('theirs')
		const run_id = await finished('ours')
		for (const stream of [streams[0], streams[3]]) {
			await stream?.waitFor((event) => event.event_type === 'run.completed' && event.run_id === run_id)
			t.notOk(stream?.events.some(({ agent_id }) => agent_id !== 'ours' && agent_id !== 'mine-1'))
		}
		t.strictSame([streams[1]?.events, streams[2]?.events], [[], []])
	})

	await t.test('does not manage the gateway, even with every scope', async (t) => {
		for (const path of [
			'/v1/vault/secrets',
			'/v1/vault/grants',
			'/v1/channels',
			'/v1/auth/tokens',
			'/v1/plugins',
			'/metrics',
		])
			t.match(
				(await asToken('GET', path)).body,
				{ statusCode: 403, message: /only for the agents mine-\*, ours/ },
				path,
			)
		const server = { name: 'files', transport: 'stdio', command: process.execPath }
		t.equal((await asToken('POST', '/v1/agents/ours/mcp', server)).status, 403, 'programs on the host')
		const skill = { url: 'http://127.0.0.1:9/skill.md' }
		t.equal((await asToken('POST', '/v1/agents/ours/skills/install', skill)).status, 400, 'private addresses')
		t.notMatch((await gateway.request('GET', '/readyz?verbose', { token })).body, /svc plugins/)
	})

	await t.test('gets the same error for a model of another agent as for an unknown model', async (t) => {
		const { data } = (await asToken('GET', '/v1/models')).body
		t.strictSame(
			data.map(({ id }: Answer) => id),
			['svc/mine-1', 'svc/ours'],
		)
		const ask = (model: string) =>
			asToken('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hi' }] })
		const [foreign, none, own] = await Promise.all([ask('theirs'), ask('nobody'), ask('svc/ours')])
		t.equal(foreign.status, 404)
		t.strictSame(JSON.stringify(foreign.body).replaceAll('theirs', 'nobody'), JSON.stringify(none.body))
		t.equal(own.status, 200)
	})

	await t.test('reaches no other agent over MCP', async (t) => {
		const foreign = (await asLocal('GET', '/v1/agents/theirs/runs')).body[0].run_id as string
		const client = new Client({ name: 'test', version: '1' })
		const requestInit = { headers: { authorization: `Bearer ${token}` } }
		await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit }))
		t.teardown(() => client.close())
		const call = async (name: string, args: object): Promise<string> =>
			JSON.stringify(await client.callTool({ name, arguments: { ...args } }))
		t.notMatch(await call('list_agents', {}), /theirs/)
		for (const [name, args] of [
			['run_agent', { agent: 'theirs', prompt: 'Hi' }],
			['get_run', { run_id: foreign }],
			['stop_run', { run_id: foreign }],
			['answer_question', { run_id: foreign, question_id: 'q', answer: 'a' }],
			['list_runs', { agent: 'theirs' }],
			['stop_agent', { agent: 'theirs' }],
			['search_memory', { agent: 'theirs', query: 'x' }],
		] as const)
			t.match(await call(name, args), /there is no (agent|run)/, name)
		t.notMatch(JSON.stringify(await client.listResources()), /theirs/)
		await t.rejects(client.readResource({ uri: `svc://runs/${foreign}` }), /there is no run/)
		await t.rejects(client.readResource({ uri: 'svc://agents/theirs/history' }), /there is no agent/)
		t.match(await call('run_agent', { agent: 'ours', prompt: 'Hi' }), /completed/)
	})

	await t.test('reaches no other agent over the chat API and its WebSocket', async (t) => {
		const chat = gateway.running.gateway.status.url('legacy') ?? ''
		const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
		const ask = (agent: string) =>
			fetch(`${chat}/api/agents/${agent}/chat`, { method: 'POST', headers, body: JSON.stringify({ message: 'Hi' }) })
		t.equal((await ask('theirs')).status, 404)
		t.equal((await ask('ours')).status, 200)
		const opened = (agent: string): Promise<number> =>
			new Promise((resolve) => {
				const socket = new WebSocket(`${chat.replace('http', 'ws')}/api/agents/${agent}/chat/ws`, { headers })
				socket.on('open', () => (socket.close(), resolve(101)))
				socket.on('unexpected-response', (_, { statusCode = 0 }) => resolve(statusCode))
			})
		t.strictSame(await Promise.all(['ours', 'theirs', 'nobody'].map(opened)), [101, 404, 404])
	})
})
