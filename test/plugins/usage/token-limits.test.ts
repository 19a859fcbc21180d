/** Limits of a token: requests per minute, open streams, and daily runs, tokens and cost. */
import { once } from 'node:events'
import t from 'tap'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { makeHome, startGateway } from '../../support/gateway.ts'
import type { Answer, Reply, TestGateway } from '../../support/gateway.ts'
import { startModelServer } from '../../support/model-server.ts'
import { roomInDay } from '../../support/day.ts'
import { assertError } from '../../support/error-response.ts'
import { eventually } from '../../support/wait.ts'

const DAY_MS = 24 * 3_600_000
await roomInDay()
const model = await startModelServer()
t.teardown(() => model.stop())
const usage = { prompt_tokens: 60, completion_tokens: 5 }
model.on('hello', { text: 'Hello.', usage })
for (const prompt of ['first task', 'second task', 'third task']) {
	const spawn = { name: 'subagent_spawn', arguments: { prompt: 'hello', wait: true } }
	model.on(prompt, { tools: [spawn], usage }, { text: 'Done.', usage })
}

const config = `
providers:
  mock: {kind: openai, base_url: '${model.url}', model: m, prices: {m: {input: 1000, output: 1000}}}
default_provider: mock
`

async function start(t: Test): Promise<TestGateway> {
	const gateway = await startGateway({ config })
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	return gateway
}

/** A token with these limits, as a function that sends requests with it. */
async function tokenOf(gateway: TestGateway, limits: object) {
	const body = { scopes: ['*'], label: 'bot', limits }
	const created = await gateway.request('POST', '/v1/auth/tokens', { body })
	if (created.status !== 201) throw new Error(JSON.stringify(created.body))
	const token = created.body.token as string
	const send = (method: string, path: string, json?: object): Promise<Reply<Answer>> =>
		gateway.request(method, path, { token, ...(json && { body: json }) })
	return { token, id: created.body.id as string, send }
}
type Send = Awaited<ReturnType<typeof tokenOf>>['send']

/** Starts a run, and waits for its end. */
async function complete(gateway: TestGateway, send: Send, prompt: string, agent = 'ada'): Promise<Answer> {
	const { status, body } = await send('POST', `/v1/agents/${agent}/runs`, { prompt })
	if (status >= 300) throw new Error(JSON.stringify(body))
	return eventually(async () => {
		const run = (await gateway.request('GET', `/v1/runs/${body.run_id}`)).body
		return /completed|failed/.test(run.status) && run
	})
}

function limited(t: Test, reply: Reply<Answer>, message: RegExp): void {
	assertError(t, reply, { status: 429, code: 'rate_limited', message })
	t.ok(Number(reply.headers.get('retry-after')) >= 1)
}

void t.test('limits the requests per minute', async (t) => {
	const gateway = await start(t)
	const { send } = await tokenOf(gateway, { requests_per_minute: 3 })
	const other = await tokenOf(gateway, { requests_per_minute: 3 })
	for (let n = 0; n < 3; n++) t.equal((await send('GET', '/v1/agents')).status, 200)
	limited(t, await send('GET', '/v1/agents'), /^your token may send 3 requests per minute/)
	t.equal((await other.send('GET', '/v1/agents')).status, 200, 'other tokens are not affected')
	t.match((await other.send('GET', '/v1/auth/me')).body, { kind: 'token', limits: { requests_per_minute: 3 } })
})

void t.test('limits the streams and WebSockets that are open at the same time', async (t) => {
	const gateway = await start(t)
	const { token, send } = await tokenOf(gateway, { streams: 2 })
	const first = new AbortController()
	const stream = await fetch(`${gateway.url}/v1/events/stream`, {
		headers: { authorization: `Bearer ${token}` },
		signal: first.signal,
	})
	t.equal(stream.status, 200)
	const legacy = gateway.running.gateway.status.url('legacy') ?? ''
	const socket = new WebSocket(`${legacy.replace('http', 'ws')}/api/agents/ada/chat/ws`, {
		headers: { authorization: `Bearer ${token}` },
	})
	await once(socket, 'open')
	limited(t, await send('GET', '/v1/events/stream'), /^your token has 2 streams open/)
	t.equal((await send('GET', '/v1/agents')).status, 200)
	first.abort()
	const next = new AbortController()
	await eventually(async () => {
		const { status } = await fetch(`${gateway.url}/v1/events/stream`, {
			headers: { authorization: `Bearer ${token}` },
			signal: next.signal,
		})
		return status === 200
	})
	next.abort()
	socket.terminate()
})

void t.test('limits the daily runs, also after a restart and the deletion of an agent', async (t) => {
	const home = makeHome({ config }, t)
	let gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const { token, send } = await tokenOf(gateway, { runs_per_day: 3 })
	t.equal((await complete(gateway, send, 'first task')).status, 'completed')
	const started = await Promise.all(
		Array.from({ length: 8 }, (_, n) =>
			send('POST', '/v1/agents/ada/runs', { prompt: 'hello', conversation: `c${n}` }),
		),
	)
	t.equal(started.filter(({ status }) => status < 300).length, 2, 'the sub-agent does not count')
	for (const reply of started.filter(({ status }) => status >= 300))
		limited(t, reply, /^the token "bot" has started its 3 runs \(runs_per_day\) for a day; the day ends at /)
	t.equal((await gateway.request('POST', '/v1/agents/ada/runs', { body: { prompt: 'hello' } })).status, 200)

	await gateway.request('DELETE', '/v1/agents/ada')
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	limited(t, await send('POST', '/v1/agents/ada/runs', { prompt: 'hello' }), /started its 3 runs/)

	await gateway.stop()
	gateway = await startGateway({ home })
	const body = { prompt: 'hello' }
	const startRun = (): Promise<Reply<Answer>> => gateway.request('POST', '/v1/agents/ada/runs', { token, body })
	limited(t, await startRun(), /started its 3 runs/)
	const real = Date.now
	t.teardown(() => (Date.now = real))
	Date.now = () => real() + DAY_MS
	t.equal((await startRun()).status, 200, 'on the next day')
})

void t.test('limits the daily tokens and cost of all agents and their sub-agents', async (t) => {
	const gateway = await start(t)
	await gateway.request('POST', '/v1/agents', { body: { name: 'eve' } })
	const { send } = await tokenOf(gateway, { tokens_per_day: 250 })
	t.equal((await complete(gateway, send, 'second task')).status, 'completed') // 3 calls of 65
	t.equal((await complete(gateway, send, 'hello', 'eve')).status, 'completed')
	limited(
		t,
		await send('POST', '/v1/agents/eve/runs', { prompt: 'hello' }),
		/^the token "bot" has used 260 of its 250 tokens \(tokens_per_day\) for a day/,
	)
	t.equal(
		(await complete(gateway, (await tokenOf(gateway, { tokens_per_day: 100 })).send, 'hello')).status,
		'completed',
	)

	const poor = await tokenOf(gateway, { cost_per_day: 0.1 })
	const { status, error } = await complete(gateway, poor.send, 'third task')
	t.equal(status, 'failed')
	t.match(error, { code: 'limit_cost', message: /^the token "bot" has spent .* \(its limits\.cost_per_day\)/ })
	limited(t, await poor.send('POST', '/v1/agents/ada/runs', { prompt: 'hello' }), /\(cost_per_day\)/)
})

void t.test('rejects invalid limits', async (t) => {
	const gateway = await start(t)
	for (const limits of [{}, { streams: 0 }, { runs_per_day: 1.5 }, { cost_per_day: -1 }, { runs: 3 }])
		assertError(t, await gateway.request('POST', '/v1/auth/tokens', { body: { scopes: ['*'], limits } }), {
			status: 400,
			code: 'invalid_request',
		})
})
