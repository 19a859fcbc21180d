/**
 * Callers must not learn a secret from what the gateway redacts, truncates, delays or refuses: a request with the start of a
 * secret and one with a similar text of the same length must get the same response.
 *
 * ORACLE=all tries every guess at every place. By default each place gets one guess of each secret, a different one than the
 * place before, so that five places in a row get all of them.
 */
import t from 'tap'
import type { Test } from 'tap'
import WebSocket from 'ws'
import { addToken } from '../support/add.ts'
import { endedRun } from '../support/ended-run.ts'
import { send, startGateway } from '../support/gateway.ts'
import type { Answer } from '../support/gateway.ts'
import { openStream } from '../support/sse.ts'

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

const { token: operatorToken } = await addToken(gateway, ['*'])
/** Has many scopes, but none of the vault. */
const { token: readerToken } = await addToken(gateway, ['agents:read', 'agents:write', 'runs:write', 'events:read'], {
	by: operatorToken,
})

const callerWith =
	(token: string | undefined, base = gateway.url) =>
	async (method: string, path: string, body?: unknown): Promise<{ status: number; body: Answer; text: string }> => {
		const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
		const { status, body: answer } = await send(base + path, method, { headers, ...(body !== undefined && { body }) })
		return { status, body: answer, text: `${status} ${typeof answer === 'string' ? answer : JSON.stringify(answer)}` }
	}
const asOperator = callerWith(operatorToken)
const asReader = callerWith(readerToken)
const asChatReader = callerWith(readerToken, chatUrl)
const asStranger = callerWith(undefined)
const asChatStranger = callerWith(undefined, chatUrl)

/** The event blocks of a streamed response. */
const events = async (base: string, path: string, body?: unknown): Promise<string[]> => {
	const response = await fetch(base + path, {
		method: body === undefined ? 'GET' : 'POST',
		headers: { authorization: `Bearer ${readerToken}`, 'content-type': 'application/json' },
		...(body !== undefined && { body: JSON.stringify(body) }),
	})
	return (await response.text()).split('\n\n').filter((one) => one.includes('data: '))
}

const run = async (agent: string, prompt: string): Promise<Answer> => {
	const { run_id } = (await asReader('POST', `/v1/agents/${agent}/runs`, { prompt })).body
	return endedRun(gateway.url, run_id, readerToken)
}

await asOperator('POST', '/v1/agents', { name: 'victim' })
await asOperator('POST', '/v1/agents', { name: 'mine' })
await asOperator('POST', '/v1/agents', { name: 'keyed', config: { provider: 'keyed' } })
const secret = (await asOperator('POST', '/v1/vault/secrets', { name: 'GRANTED', value: granted })).body
await asOperator('POST', '/v1/vault/grants', { agent_id: 'victim', secret_id: secret.id })
await run('victim', '/tool vault.read {"name": "GRANTED"}')
await run('keyed', 'which makes the gateway use its key')
const webhook = (await asOperator('POST', '/v1/agents/victim/webhooks', { slug: 'deploys' })).body.secret as string

const secrets = { 'a granted secret': granted, 'the key of a provider': providerKey, "a webhook's secret": webhook }

/** Texts that begin a secret in some encoding, each with a similar one that does not. */
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

/** Replaces what differs between any two responses. */
function normalized(text: string, guess: string): string {
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

/** `count` pairs of guesses from number `first` on, or all of them with ORACLE=all. */
function pairsFor(value: string, first: number, count: number): [right: string, wrong: string][] {
	const pairs = [...guesses(value)]
	if (all) return pairs
	return Array.from({ length: count }, (_, n) => pairs[(first + n) % pairs.length] as [string, string])
}

async function alike(t: Test, what: string, ask: (guess: string) => Promise<string>): Promise<void> {
	const place = places++
	for (const [at, [name, value]] of Object.entries(secrets).entries()) {
		const leaks: string[] = []
		for (const [right, wrong] of pairsFor(value, place + at, 1)) {
			const [real, control] = [await ask(right), await ask(wrong)]
			if (normalized(real, right) !== normalized(control, wrong)) leaks.push(`${right}: ${real}\n${wrong}: ${control}`)
			if (/\[redacted/.test(real)) leaks.push(real)
		}
		t.strictSame(leaks, [], `${what} reveals nothing about ${name}`)
	}
}

const path = encodeURIComponent

void t.test('requests without a token', async (t) => {
	// Long enough that an error would be truncated right after the first 16 characters of a guess.
	const long = 'x'.repeat(183)
	await alike(t, 'a path', async (guess) => (await asStranger('GET', `/${path(guess)}`)).text)
	await alike(t, 'a long path', async (guess) => (await asStranger('GET', `/${long}${path(guess)}`)).text)
	await alike(t, "an agent's name", async (guess) => (await asStranger('GET', `/v1/agents/${path(guess)}`)).text)
	await alike(t, 'a query', async (guess) => (await asStranger('GET', `/v1/audit?${path(guess)}=1`)).text)
	await alike(t, 'a body', async (guess) => (await asStranger('POST', '/v1/agents', { name: guess, [guess]: 1 })).text)
	await alike(
		t,
		"a webhook's address",
		async (guess) => (await asStranger('POST', `/v1/hooks/${path(guess)}`, {})).text,
	)
	await alike(t, "a model's name", async (guess) => (await asStranger('GET', `/v1/models/${path(guess)}`)).text)
	await alike(t, 'the OpenAI API', async (guess) => (await asStranger('GET', `/v1/chat/${path(guess)}`)).text)
	await alike(t, 'MCP', async (guess) => (await asStranger('POST', '/mcp', { method: guess })).text)
	await alike(t, 'a token', async (guess) => {
		const { status, body } = await send(`${gateway.url}/v1/agents`, 'GET', {
			headers: { authorization: `Bearer ${path(guess)}` },
		})
		return `${status} ${JSON.stringify(body).replace(/wait \d+ s/, 'wait')}`
	})
	await alike(t, 'a path of the chat API', async (guess) => (await asChatStranger('GET', `/${path(guess)}`)).text)
	await alike(
		t,
		'a chat',
		async (guess) => (await asChatStranger('POST', `/api/agents/${path(guess)}/chat`, { message: guess })).text,
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

void t.test('refused requests with a token', async (t) => {
	await alike(
		t,
		'an unknown key',
		async (guess) => (await asReader('POST', '/v1/agents', { name: 'x', [guess]: 1 })).text,
	)
	await alike(t, 'a name', async (guess) => (await asReader('POST', '/v1/agents', { name: `${guess} ` })).text)
	await alike(t, 'a missing agent', async (guess) => (await asReader('GET', `/v1/agents/${path(guess)}`)).text)
	await alike(
		t,
		'a long name',
		async (guess) => (await asReader('GET', `/v1/agents/${'x'.repeat(184)}${path(guess)}`)).text,
	)
	await alike(t, 'a cursor', async (guess) => (await asReader('GET', `/v1/audit?cursor=${path(guess)}`)).text)
	await alike(
		t,
		'a slug',
		async (guess) => (await asReader('POST', '/v1/agents/mine/webhooks', { slug: `${guess}!` })).text,
	)
	await alike(
		t,
		'a model',
		async (guess) => (await asReader('POST', '/v1/chat/completions', { model: guess, messages: [] })).text,
	)
	await alike(t, 'a chat', async (guess) => (await asChatReader('POST', '/api/agents/mine/chat', { [guess]: 1 })).text)
	await alike(
		t,
		'a chat with a missing agent',
		async (guess) => (await asChatReader('POST', `/api/agents/${path(guess)}/chat`, { message: 'x' })).text,
	)
})

void t.test('texts that a caller stores', async (t) => {
	for (const agent of ['mine', 'victim']) {
		await alike(t, `a persona of ${agent}`, async (guess) => {
			const { text } = await asReader('PATCH', `/v1/agents/${agent}`, { persona: guess })
			return text + (await asReader('GET', `/v1/agents/${agent}`)).text
		})
		await alike(t, `a skill of ${agent}`, async (guess) => {
			const content = `---\nname: x\ndescription: ${guess}\n---\n${guess}`
			const { status, body } = await asReader('POST', `/v1/agents/${agent}/skills/install`, { content })
			const review = await asReader('GET', `/v1/agents/${agent}/skills/${body.id}`)
			await asReader('DELETE', `/v1/agents/${agent}/skills/${body.id}`)
			return `${status} ${review.body.markdown}`
		})
		await alike(t, `a heartbeat of ${agent}`, async (guess) => {
			const made = await asReader('POST', `/v1/agents/${agent}/heartbeats`, { every: '24h', prompt: guess })
			await asReader('DELETE', `/v1/agents/${agent}/heartbeats/${made.body.id}`)
			return String(made.body.prompt)
		})
	}
	// Even a complete secret, if the agent does not have it.
	for (const value of Object.values(secrets)) {
		await asReader('PATCH', '/v1/agents/mine', { persona: value })
		t.equal((await asReader('GET', '/v1/agents/mine')).body.persona, value)
		const install = await asReader('POST', '/v1/agents/victim/skills/install', {
			content: `---\nname: y\ndescription: y\n---\n${value}`,
		})
		t.equal(install.status, 201, 'an installation does not reveal it either')
		const ended = await run('mine', `Say ${value}`)
		t.match(ended, { prompt: `Say ${value}`, answer: new RegExp(value) })
	}
})

void t.test('runs, and all routes that return them', async (t) => {
	for (const agent of ['mine', 'victim']) await asReader('PATCH', `/v1/agents/${agent}`, { persona: 'You are brief.' })
	for (const agent of ['mine', 'victim']) {
		await alike(t, `a run of ${agent}`, async (guess) => {
			const { prompt, answer, run_id } = await run(agent, guess)
			const audit = (await asReader('GET', `/v1/audit?run_id=${run_id}`)).body.events as Answer[]
			const lines = audit.map(({ event_type, payload }) => `${event_type} ${payload.content}`)
			return [prompt, answer, ...lines].join('\n')
		})
		if (agent === 'mine') continue
		await alike(t, `a chat with ${agent}`, async (guess) => {
			const { body } = await asChatReader('POST', `/api/agents/${agent}/chat`, { message: guess })
			return `${body.success} ${body.response}`
		})
		await alike(t, `a chat completion by ${agent}`, async (guess) => {
			const messages = [{ role: 'user', content: guess }]
			const { status, body } = await asReader('POST', '/v1/chat/completions', { model: agent, messages })
			return `${status} ${body.choices?.[0].message.content}`
		})
		await alike(t, `a call of ${agent} over MCP`, async (guess) => runOverMcp(agent, guess))
	}
})

void t.test('the parts of a stream', async (t) => {
	/** Parts that break the rule: a part ends after a character that is not printable ASCII, or with the text. */
	const edges = (pieces: string[]): string[] => {
		const text = pieces.join('')
		let at = 0
		return pieces.filter((piece) => {
			at += piece.length
			return at < text.length && /[\x21-\x7e]$/.test(text.slice(0, at))
		})
	}
	for (const [at, value] of Object.values(secrets).entries()) {
		const wrong: string[] = []
		for (const pair of pairsFor(value, 2 * at, 2)) {
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
				for (const parts of [pieces, chunks]) {
					if (!parts.join('').includes(say)) wrong.push(`${guess} is missing: ${parts.join('')}`)
					wrong.push(...edges(parts))
				}
			}
		}
		t.strictSame(wrong, [])
	}
})

void t.test('a secret of the agent is redacted, and only callers that can list secrets get its name', async (t) => {
	const stream = await openStream(gateway.url, { token: readerToken, query: { agent_id: 'victim' } })
	t.teardown(() => stream.close())
	const { run_id, prompt, answer } = await run('victim', `Say ${granted}`)
	t.equal(prompt, 'Say [redacted]')
	t.match(answer, /Say \[redacted\]/)
	const named = (await asOperator('GET', `/v1/runs/${run_id}`)).body
	t.equal(named.prompt, 'Say [redacted:GRANTED]')
	const notices = async (caller: typeof asReader): Promise<Answer[]> =>
		((await caller('GET', '/v1/audit?event_type=security.redacted')).body.events as Answer[]).map(
			({ payload }) => payload,
		)
	const [forReader, forOperator] = [await notices(asReader), await notices(asOperator)]
	t.ok(forReader.length > 0)
	t.ok(forReader.every((payload) => Object.keys(payload).toSorted().join() === 'count,sink'))
	t.ok(forOperator.every((payload) => payload.secret === 'GRANTED' && payload.secret_id === secret.id))
	const chat = await asChatReader('POST', '/api/agents/victim/chat', { message: `Say ${granted}` })
	const pieces = (await events(chatUrl, `/api/agents/victim/chat/stream?message=${path(`Say ${granted}`)}`)).join('')
	const completion = await asReader('POST', '/v1/chat/completions', {
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
	const audit = (await asReader('GET', '/v1/audit?agent_id=victim&limit=500')).text
	const history = (await asReader('GET', '/v1/agents/victim/history')).text
	for (const [what, text] of Object.entries({
		stream: JSON.stringify(stream.events),
		chat: chat.text,
		pieces,
		completion: completion.text,
		chunks,
		audit,
		history,
		mcp: await runOverMcp('victim', `Say ${granted}`),
	})) {
		t.match(text, /\[redacted\]/, what)
		t.notMatch(text, /\[redacted:/, what)
		t.notOk(text.includes(granted), what)
	}
	t.match((await asOperator('GET', '/v1/audit?agent_id=victim&limit=500')).text, /\[redacted:GRANTED\]/)
})

async function runOverMcp(agent: string, prompt: string): Promise<string> {
	const headers = {
		authorization: `Bearer ${readerToken}`,
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
	await fetch(`${gateway.url}/mcp`, {
		method: 'DELETE',
		headers: { ...headers, 'mcp-session-id': session },
	})
	const { structuredContent } = (JSON.parse(/^data: (\{.*\})$/m.exec(text)?.[1] ?? text) as Answer).result
	return `${structuredContent.status} ${structuredContent.answer}`
}
