/**
 * A patient reader tries to learn a secret from what the gateway redacts, cuts, holds back or refuses: with the beginning of a
 * secret and with a text of the same length that begins no secret. Whatever it tries, both answers must be alike.
 *
 * ORACLE=all tries every guess everywhere. By default each place gets one guess of each secret, another one than the place
 * before it, so that five places in a row get all of them.
 */
import t from 'tap'
import type { Test } from 'tap'
import WebSocket from 'ws'
import { send, startGateway } from '../support/gateway.ts'
import type { Answer } from '../support/gateway.ts'
import { openStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'

const granted = 'ghp_Zq7RkX2mWv9LtB4nYc8H'
const providerKey = 'sk-proj-Ab3dEf6hIj9kLm2nOp5q'

const gateway = await startGateway({
	config: `auth_mode: token
plugins: { openai-api: true, mcp-server: true }
providers:
  offline: { kind: offline }
  keyed: { kind: openai, base_url: "http://127.0.0.1:9/v1", model: m, api_key: ${providerKey} }
default_provider: offline
`,
})
t.teardown(() => gateway.stop())
const chatUrl = gateway.running.gateway.status.url('legacy') as string

const tokenFor = async (scopes: string[], by?: string): Promise<string> => {
	const headers = by === undefined ? {} : { authorization: `Bearer ${by}` }
	return (await gateway.request('POST', '/v1/auth/tokens', { body: { scopes }, headers })).body.token
}
const first = await tokenFor(['tokens:admin'])
const operator = await tokenFor(['*'], first)
/** May do a lot, but has no part in the vault. */
const reader = await tokenFor(['agents:read', 'agents:write', 'runs:write', 'events:read'], operator)

const as =
	(token: string | undefined, base = gateway.url) =>
	async (method: string, path: string, body?: unknown): Promise<{ status: number; body: Answer; text: string }> => {
		const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
		const { status, body: answer } = await send(base + path, method, { headers, ...(body !== undefined && { body }) })
		return { status, body: answer, text: `${status} ${typeof answer === 'string' ? answer : JSON.stringify(answer)}` }
	}
const operates = as(operator)
const reads = as(reader)
const readsChat = as(reader, chatUrl)
const stranger = as(undefined)
const chatStranger = as(undefined, chatUrl)

/** The events of an answer, as they come. */
const events = async (base: string, path: string, body?: unknown): Promise<string[]> => {
	const response = await fetch(base + path, {
		method: body === undefined ? 'GET' : 'POST',
		headers: { authorization: `Bearer ${reader}`, 'content-type': 'application/json' },
		...(body !== undefined && { body: JSON.stringify(body) }),
	})
	return (await response.text()).split('\n\n').filter((one) => one.includes('data: '))
}

const run = async (agent: string, prompt: string): Promise<Answer> => {
	const { run_id } = (await reads('POST', `/v1/agents/${agent}/runs`, { prompt })).body
	return eventually(
		async () => (await reads('GET', `/v1/runs/${run_id}`)).body,
		({ status }) => ['completed', 'failed', 'stopped'].includes(status),
	)
}

await operates('POST', '/v1/agents', { name: 'victim' })
await operates('POST', '/v1/agents', { name: 'mine' })
await operates('POST', '/v1/agents', { name: 'keyed', config: { provider: 'keyed' } })
const secret = (await operates('POST', '/v1/vault/secrets', { name: 'GRANTED', value: granted })).body
await operates('POST', '/v1/vault/grants', { agent_id: 'victim', secret_id: secret.id })
await run('victim', '/tool vault.read {"name": "GRANTED"}')
await run('keyed', 'which makes the gateway use its key')
const webhook = (await operates('POST', '/v1/agents/victim/webhooks', { slug: 'deploys' })).body.secret as string

const secrets = { 'a granted secret': granted, 'the key of a provider': providerKey, "a webhook's secret": webhook }

/** Texts that begin, or end, a secret in some encoding, each with one of the same kind that does not. */
function* guesses(value: string): Generator<[right: string, wrong: string]> {
	const [base64, hex] = [Buffer.from(value).toString('base64url'), Buffer.from(value).toString('hex')]
	const parts = [
		`${value.slice(0, 16)}…`,
		value.slice(0, -2),
		`${value.slice(0, -1)}…`,
		base64.slice(0, -2),
		hex.slice(0, -2),
	]
	for (const part of parts) {
		const at = part.endsWith('…') ? part.length - 2 : part.length - 1
		yield [part, `${part.slice(0, at)}${part[at] === '7' ? '8' : '7'}${part.slice(at + 1)}`]
	}
}

/** What differs from one request to the next, whatever was asked. */
function withoutChance(text: string, guess: string): string {
	return text
		.replaceAll(JSON.stringify(guess).slice(1, -1), '<guess>')
		.replaceAll(encodeURIComponent(guess), '<guess>')
		.replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>')
		.replace(/\b[0-9a-f]{64}\b|(?<="token":")[\w-]+|(?<=hooks\/)[\w-]+/g, '<random>')
		.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
		.replace(/"(processing_time_ms|created|sequence|active_ms|created_at)":\d+/g, '"$1":0')
		.replace(/(chatcmpl|resp|msg|call|run)[-_][\w-]+/g, '<id>')
		.replace(/"similarity":[\d.e-]+/g, '"similarity":0')
}

const all = process.env.ORACLE === 'all'
let places = 0

/** The pairs of guesses for a place: the `count` that are its turn, or all of them. */
function turnOf(value: string, first: number, count: number): [right: string, wrong: string][] {
	const pairs = [...guesses(value)]
	if (all) return pairs
	return Array.from({ length: count }, (_, n) => pairs[(first + n) % pairs.length] as [string, string])
}

async function alike(t: Test, what: string, ask: (guess: string) => Promise<string>): Promise<void> {
	const place = places++
	for (const [at, [name, value]] of Object.entries(secrets).entries()) {
		const told: string[] = []
		for (const [right, wrong] of turnOf(value, place + at, 1)) {
			const [one, other] = [await ask(right), await ask(wrong)]
			if (withoutChance(one, right) !== withoutChance(other, wrong)) told.push(`${right}: ${one}\n${wrong}: ${other}`)
			if (/\[redacted/.test(one)) told.push(one)
		}
		t.strictSame(told, [], `${what} tells nothing of ${name}`)
	}
}

const path = encodeURIComponent

void t.test('strangers', async (t) => {
	// So that an error would be cut right behind the first 16 characters.
	const long = 'x'.repeat(183)
	await alike(t, 'a path', async (guess) => (await stranger('GET', `/${path(guess)}`)).text)
	await alike(t, 'a long path', async (guess) => (await stranger('GET', `/${long}${path(guess)}`)).text)
	await alike(t, "an agent's name", async (guess) => (await stranger('GET', `/v1/agents/${path(guess)}`)).text)
	await alike(t, 'a query', async (guess) => (await stranger('GET', `/v1/audit?${path(guess)}=1`)).text)
	await alike(t, 'a body', async (guess) => (await stranger('POST', '/v1/agents', { name: guess, [guess]: 1 })).text)
	await alike(t, "a webhook's address", async (guess) => (await stranger('POST', `/v1/hooks/${path(guess)}`, {})).text)
	await alike(t, "a model's name", async (guess) => (await stranger('GET', `/v1/models/${path(guess)}`)).text)
	await alike(t, 'the OpenAI surface', async (guess) => (await stranger('GET', `/v1/chat/${path(guess)}`)).text)
	await alike(t, 'MCP', async (guess) => (await stranger('POST', '/mcp', { method: guess })).text)
	await alike(t, 'a token', async (guess) => {
		const { status, body } = await send(`${gateway.url}/v1/agents`, 'GET', {
			headers: { authorization: `Bearer ${path(guess)}` },
		})
		return `${status} ${JSON.stringify(body).replace(/wait \d+ s/, 'wait')}`
	})
	await alike(t, 'a path of the chat', async (guess) => (await chatStranger('GET', `/${path(guess)}`)).text)
	await alike(
		t,
		'a chat',
		async (guess) => (await chatStranger('POST', `/api/agents/${path(guess)}/chat`, { message: guess })).text,
	)
	await alike(t, 'an upgrade', async (guess) => {
		const socket = new WebSocket(`${chatUrl.replace('http', 'ws')}/api/agents/${path(guess)}/chat/ws`)
		return new Promise((resolve) => {
			socket.on('error', () => {})
			socket.on('unexpected-response', (_, response) => {
				let text = `${response.statusCode} `
				response.on('data', (data) => (text += String(data)))
				response.on('end', () => resolve(text.replace(/"request_id":"[^"]*"/, '')))
			})
		})
	})
})

void t.test('refusals of a caller', async (t) => {
	await alike(t, 'an unknown key', async (guess) => (await reads('POST', '/v1/agents', { name: 'x', [guess]: 1 })).text)
	await alike(t, 'a name', async (guess) => (await reads('POST', '/v1/agents', { name: `${guess} ` })).text)
	await alike(t, 'a missing agent', async (guess) => (await reads('GET', `/v1/agents/${path(guess)}`)).text)
	await alike(
		t,
		'a long name',
		async (guess) => (await reads('GET', `/v1/agents/${'x'.repeat(184)}${path(guess)}`)).text,
	)
	await alike(t, 'a cursor', async (guess) => (await reads('GET', `/v1/audit?cursor=${path(guess)}`)).text)
	await alike(
		t,
		'a slug',
		async (guess) => (await reads('POST', '/v1/agents/mine/webhooks', { slug: `${guess}!` })).text,
	)
	await alike(
		t,
		'a model',
		async (guess) => (await reads('POST', '/v1/chat/completions', { model: guess, messages: [] })).text,
	)
	await alike(t, 'a chat', async (guess) => (await readsChat('POST', '/api/agents/mine/chat', { [guess]: 1 })).text)
	await alike(
		t,
		'a chat of nobody',
		async (guess) => (await readsChat('POST', `/api/agents/${path(guess)}/chat`, { message: 'x' })).text,
	)
})

void t.test('what a caller writes down', async (t) => {
	for (const agent of ['mine', 'victim']) {
		await alike(t, `a persona of ${agent}`, async (guess) => {
			const { text } = await reads('PATCH', `/v1/agents/${agent}`, { persona: guess })
			return text + (await reads('GET', `/v1/agents/${agent}`)).text
		})
		await alike(t, `a skill of ${agent}`, async (guess) => {
			const content = `---\nname: x\ndescription: ${guess}\n---\n${guess}`
			const { status, body } = await reads('POST', `/v1/agents/${agent}/skills/install`, { content })
			const review = await reads('GET', `/v1/agents/${agent}/skills/${body.id}`)
			await reads('DELETE', `/v1/agents/${agent}/skills/${body.id}`)
			return `${status} ${review.body.markdown}`
		})
		await alike(t, `a heartbeat of ${agent}`, async (guess) => {
			const made = await reads('POST', `/v1/agents/${agent}/heartbeats`, { every: '24h', prompt: guess })
			await reads('DELETE', `/v1/agents/${agent}/heartbeats/${made.body.id}`)
			return String(made.body.prompt)
		})
	}
	// Also a complete one, where it is of no concern to the agent.
	for (const value of Object.values(secrets)) {
		await reads('PATCH', '/v1/agents/mine', { persona: value })
		t.equal((await reads('GET', '/v1/agents/mine')).body.persona, value)
		const install = await reads('POST', '/v1/agents/victim/skills/install', {
			content: `---\nname: y\ndescription: y\n---\n${value}`,
		})
		t.equal(install.status, 201, 'nor does an installation tell')
		const ended = await run('mine', `Say ${value}`)
		t.match(ended, { prompt: `Say ${value}`, answer: new RegExp(value) })
	}
})

void t.test('runs, and everything that shows them', async (t) => {
	for (const agent of ['mine', 'victim']) await reads('PATCH', `/v1/agents/${agent}`, { persona: 'You are brief.' })
	for (const agent of ['mine', 'victim']) {
		await alike(t, `a run of ${agent}`, async (guess) => {
			const { prompt, answer, run_id } = await run(agent, guess)
			const audit = (await reads('GET', `/v1/audit?run_id=${run_id}`)).body.events as Answer[]
			const said = audit.map(({ event_type, payload }) => `${event_type} ${payload.content}`)
			return [prompt, answer, ...said].join('\n')
		})
		if (agent === 'mine') continue
		await alike(t, `a chat with ${agent}`, async (guess) => {
			const { body } = await readsChat('POST', `/api/agents/${agent}/chat`, { message: guess })
			return `${body.success} ${body.response}`
		})
		await alike(t, `a chat completion by ${agent}`, async (guess) => {
			const messages = [{ role: 'user', content: guess }]
			const { status, body } = await reads('POST', '/v1/chat/completions', { model: agent, messages })
			return `${status} ${body.choices?.[0].message.content}`
		})
		await alike(t, `a call of ${agent} over MCP`, async (guess) => mcp(agent, guess))
	}
})

void t.test('how a stream is cut into pieces', async (t) => {
	/** Whatever is held back ends where the text has no printable ASCII character, and with the text. */
	const edges = (pieces: string[]): string[] => {
		const whole = pieces.join('')
		let at = 0
		return pieces.filter((piece) => {
			at += piece.length
			return at < whole.length && /[\x21-\x7e]$/.test(whole.slice(0, at))
		})
	}
	for (const [at, value] of Object.values(secrets).entries()) {
		const wrong: string[] = []
		for (const pair of turnOf(value, 2 * at, 2)) {
			for (const guess of pair) {
				const say = `a ${guess} b ${guess}-${guess}c d`
				const chat = await events(chatUrl, `/api/agents/victim/chat/stream?message=${path(say)}`)
				const pieces = chat
					.filter((one) => one.startsWith('event: token'))
					.map((one) => JSON.parse(one.split('data: ')[1] as string).content as string)
				const body = { model: 'victim', stream: true, messages: [{ role: 'user', content: say }] }
				const chunks = (await events(gateway.url, '/v1/chat/completions', body))
					.filter((one) => one.startsWith('data: {'))
					.map((one) => String(JSON.parse(one.slice(6)).choices[0]?.delta?.content ?? ''))
				for (const told of [pieces, chunks]) {
					if (!told.join('').includes(say)) wrong.push(`${guess} is not there: ${told.join('')}`)
					wrong.push(...edges(told))
				}
			}
		}
		t.strictSame(wrong, [])
	}
})

void t.test('a complete secret of the agent is redacted, and named to those who may list secrets only', async (t) => {
	const stream = await openStream(gateway.url, { token: reader, query: { agent_id: 'victim' } })
	t.teardown(() => stream.close())
	const { run_id, prompt, answer } = await run('victim', `Say ${granted}`)
	t.equal(prompt, 'Say [redacted]')
	t.match(answer, /Say \[redacted\]/)
	const whole = (await operates('GET', `/v1/runs/${run_id}`)).body
	t.equal(whole.prompt, 'Say [redacted:GRANTED]')
	const notices = async (caller: typeof reads): Promise<Answer[]> =>
		((await caller('GET', '/v1/audit?event_type=security.redacted')).body.events as Answer[]).map(
			({ payload }) => payload,
		)
	const [seen, told] = [await notices(reads), await notices(operates)]
	t.ok(seen.length > 0)
	t.ok(seen.every((payload) => Object.keys(payload).toSorted().join() === 'count,sink'))
	t.ok(told.every((payload) => payload.secret === 'GRANTED' && payload.secret_id === secret.id))
	const chat = await readsChat('POST', '/api/agents/victim/chat', { message: `Say ${granted}` })
	const pieces = (await events(chatUrl, `/api/agents/victim/chat/stream?message=${path(`Say ${granted}`)}`)).join('')
	const completion = await reads('POST', '/v1/chat/completions', {
		model: 'victim',
		messages: [{ role: 'user', content: granted }],
	})
	const chunks = (
		await events(gateway.url, '/v1/chat/completions', {
			model: 'victim',
			stream: true,
			messages: [{ role: 'user', content: granted }],
		})
	).join('')
	const audit = (await reads('GET', '/v1/audit?agent_id=victim&limit=500')).text
	const history = (await reads('GET', '/v1/agents/victim/history')).text
	for (const [what, text] of Object.entries({
		stream: JSON.stringify(stream.events),
		chat: chat.text,
		pieces,
		completion: completion.text,
		chunks,
		audit,
		history,
		mcp: await mcp('victim', `Say ${granted}`),
	})) {
		t.match(text, /\[redacted\]/, what)
		t.notMatch(text, /\[redacted:/, what)
		t.notOk(text.includes(granted), what)
	}
	t.match((await operates('GET', '/v1/audit?agent_id=victim&limit=500')).text, /\[redacted:GRANTED\]/)
})

async function mcp(agent: string, prompt: string): Promise<string> {
	const headers = {
		authorization: `Bearer ${reader}`,
		'content-type': 'application/json',
		accept: 'application/json, text/event-stream',
	}
	const post = async (body: object, session?: string): Promise<{ text: string; session: string }> => {
		const response = await fetch(`${gateway.url}/mcp`, {
			method: 'POST',
			headers: { ...headers, ...(session !== undefined && { 'mcp-session-id': session }) },
			body: JSON.stringify({ jsonrpc: '2.0', ...body }),
		})
		return { text: await response.text(), session: response.headers.get('mcp-session-id') ?? '' }
	}
	const clientInfo = { name: 'test', version: '1' }
	const { session } = await post({
		id: 1,
		method: 'initialize',
		params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo },
	})
	await post({ method: 'notifications/initialized' }, session)
	const call = { name: 'run_agent', arguments: { agent, prompt } }
	const { text } = await post({ id: 2, method: 'tools/call', params: call }, session)
	await fetch(`${gateway.url}/mcp`, { method: 'DELETE', headers: { ...headers, 'mcp-session-id': session } })
	const { structuredContent } = (JSON.parse(/^data: (\{.*\})$/m.exec(text)?.[1] ?? text) as Answer).result
	return `${structuredContent.status} ${structuredContent.answer}`
}
