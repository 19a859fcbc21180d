/** Providers and MCP servers that repeat the secrets sent to them, also at places where the gateway truncates texts. */
import { createServer } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { addSecret, addToken } from '../support/add.ts'
import { endedRun } from '../support/ended-run.ts'
import { gatewayFor } from '../support/gateway.ts'
import type { Answer, TestGateway } from '../support/gateway.ts'
import { ogg } from '../support/files.ts'
import { listenOnLoopback, unlessReset } from '../support/loopback.ts'
import { until } from '../support/mcp.ts'
import { startModelServer } from '../support/model-server.ts'
import { openStream } from '../support/sse.ts'
import { withoutContext } from '../support/model-messages.ts'

const providerKey = 'sk-proj-Ab3dEf6hIj9kLm2nOp5q'
const granted = 'ghp_Zq7RkX2mWv9LtB4nYc8H'

type Handler = (body: Answer, headers: IncomingHttpHeaders) => { type: string; text: string; status?: number }

async function serve(t: Test, handle: Handler): Promise<string> {
	const server = createServer((request, response) => {
		;(async () => {
			let text = ''
			for await (const part of request.setEncoding('utf8')) text += String(part)
			if (text === '') return void response.writeHead(405).end()
			const isForm = request.headers['content-type']?.startsWith('multipart/')
			const answer = handle(isForm ? {} : (JSON.parse(text) as Answer), request.headers)
			const { type, status = answer.text === '' ? 202 : 200 } = answer
			response.writeHead(status, { 'content-type': type }).end(answer.text)
		})().catch(unlessReset)
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	return url
}

/** Starts a gateway with the agent `ada`. */
async function startWithAgent(t: Test, config?: string): Promise<TestGateway> {
	const gateway = await gatewayFor(t, { ...(config !== undefined && { config }) })
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	return gateway
}

/** Starts a run, and returns it after its end. */
async function completeRun({ url, request }: TestGateway, body: object): Promise<Answer> {
	const { run_id } = (await request('POST', '/v1/agents/ada/runs', { body })).body
	return endedRun(url, run_id)
}

/** Answers with the text of the latest message, with `KEY` replaced by the API key of the request. */
const model: Handler = ({ messages }, { authorization }) => {
	const content = withoutContext(String(messages.at(-1).content)).replaceAll(
		'KEY',
		String(authorization).slice('Bearer '.length),
	)
	const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
	const choice = (delta: object, finish_reason: string | null): string =>
		`data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta, finish_reason }] })}\n\n`
	return {
		type: 'text/event-stream',
		text: `${choice({ role: 'assistant', content }, null)}${choice({}, 'stop')}data: [DONE]\n\n`,
	}
}

/** Text files with an error in their encoding: half a character at the end, or an invalid byte after the first 4 KiB. */
function brokenTexts(key: string): Buffer[] {
	const ofWindows = Buffer.from(`\ufeffof ${key}\r\n`, 'utf16le')
	return [ofWindows.subarray(0, -1), Buffer.from(`${'t'.repeat(5000)}\xe9 of ${key}`, 'latin1')]
}

/** Repeats the header X-Key in everything that it returns, also at places where the gateway truncates texts. */
const mcp: Handler = ({ id, method, params }, headers) => {
	const key = String(headers['x-key'])
	const result = (): object => {
		switch (method) {
			case 'initialize':
				return {
					protocolVersion: params.protocolVersion,
					capabilities: { tools: {} },
					serverInfo: { name: `a ${key}`, version: 'v'.repeat(190) + key, title: `b ${key}` },
					instructions: `Use ${key} ${'i'.repeat(16 * 1024 - 50 - key.length)} ${key} ${key}`,
				}
			case 'tools/list': {
				const inputSchema = { type: 'object', properties: { key: { type: 'string', description: key } } }
				return {
					tools: [
						{ name: 'links', description: `${'d'.repeat(4080)}${key} and ${key}`, inputSchema },
						{ name: `t-${key}`, inputSchema: { type: 'array' } },
					],
				}
			}
			case 'tools/call':
				return {
					content: [
						{ type: 'resource_link', uri: `https://x/${'p'.repeat(475)}?${key}`, name: 'n'.repeat(480) + key },
						{ type: 'text', text: key },
						{
							type: 'resource',
							resource: {
								uri: `https://x/${'f'.repeat(245)}${key}`,
								blob: Buffer.from(`of ${key}`).toString('base64'),
							},
						},
						...brokenTexts(key).map((bytes, n) => ({
							type: 'resource',
							resource: { uri: `https://x/${n}`, blob: bytes.toString('base64') },
						})),
					],
				}
			default:
				return {}
		}
	}
	const error = { code: -5, message: `${'e'.repeat(1971)}${params?.arguments?.key}` }
	const answer = params?.arguments?.key === undefined ? { result: result() } : { error }
	return { type: 'application/json', text: id === undefined ? '' : JSON.stringify({ jsonrpc: '2.0', id, ...answer }) }
}

/** Occurrences of 10 or more characters of the secret, which cannot be a coincidence, each with the text before it. */
function partsIn(body: Answer, secret: string): string[] {
	const text = JSON.stringify(body)
	return Array.from({ length: secret.length - 9 }, (_, at) => text.indexOf(secret.slice(at, at + 10)))
		.filter((at) => at >= 0)
		.map((at) => text.slice(Math.max(0, at - 100), at + 10))
}

void t.test('the API key of a provider is redacted in an answer', async (t) => {
	const url = await serve(t, model)
	const config = `providers:\n  main: { kind: openai, base_url: "${url}/v1", model: m, api_key: ${providerKey} }\n`
	const gateway = await startWithAgent(t, config)
	const run = await completeRun(gateway, { prompt: 'The key is KEY.' })
	t.equal(run.answer, 'The key is [redacted:provider:main].')
	for (const path of [`/v1/runs/${run.run_id}`, '/v1/agents/ada/runs', '/v1/agents/ada/history', '/v1/audit?limit=500'])
		t.strictSame(partsIn((await gateway.request('GET', path)).body, providerKey), [], path)
})

void t.test('a secret header is redacted in everything that an MCP server returns', async (t) => {
	const url = await serve(t, mcp)
	const gateway = await startWithAgent(t)
	await addSecret(gateway, 'ada', 'GRANTED', granted)
	const headers = { 'x-key': '{{secret:GRANTED}}' }
	const added = await gateway.request('POST', '/v1/agents/ada/mcp', {
		body: { name: 'outside', transport: 'http', url: `${url}/mcp`, headers },
	})
	const path = `/v1/agents/ada/mcp/${added.body.id}`
	t.match(await until(gateway, 'ada', added.body.id, ({ status }) => status !== 'connecting'), {
		status: 'connected',
		server: { name: 'a [x-key]', title: 'b [x-key]' },
		instructions: /^Use \[x-key\] i/,
		tools: [{ tool: 'mcp__outside__links' }],
		not_offered: [String],
	})
	const { run_id, answer } = await completeRun(gateway, { prompt: '/tool mcp__outside__links {}' })
	t.match(answer, /link to the resource n+/)
	const audit = await gateway.request('GET', `/v1/audit?run_id=${run_id}`)
	const blobs = new Set(JSON.stringify(audit.body).match(/sha256:[0-9a-f]{64}/g))
	t.equal(blobs.size, 3)
	for (const blob of blobs) {
		const { body } = await gateway.request('GET', `/v1/agents/ada/blobs/${blob}`)
		t.match(String(body).slice(-100), /of \[redacted\]/)
	}

	const prompt = '/tool mcp__outside__links {"key": "{{secret:OTHER}}"}'
	await addSecret(gateway, 'ada', 'OTHER', 'zQ4mW8rT2yK6pL9s')
	const token = (await addToken(gateway, ['events:read'])).token
	const stream = await openStream(`${gateway.url}/v1/events/stream`, { token })
	t.teardown(() => stream.close())
	await gateway.request('POST', '/v1/agents/ada/runs', { body: { prompt } })
	const { payload } = await stream.waitFor('mcp.failed')
	t.match(payload.error ?? payload.message, /e{1971}\[redacted\]$/, 'a truncated value is redacted')
	for (const place of [path, `/v1/runs/${run_id}`, '/v1/agents/ada/history', '/v1/audit?limit=500'])
		t.strictSame(partsIn((await gateway.request('GET', place)).body, granted), [], place)
})

void t.test('the API key is redacted in an error of a transcription server', async (t) => {
	const url = await serve(t, (_, { authorization }) => ({
		type: 'text/plain',
		text: `${'e'.repeat(190)}${authorization?.slice('Bearer '.length)}`,
		status: 401,
	}))
	const gateway = await startWithAgent(
		t,
		`providers:
  offline: { kind: offline }
  voice: { kind: openai, base_url: "${url}/v1", model: m, api_key: ${providerKey} }
default_provider: offline
transcription: { provider: voice, model: whisper-1 }
`,
	)
	const attachments = [{ data: ogg().toString('base64'), name: 'voice.oga' }]
	const { run_id } = await completeRun(gateway, { attachments })
	const { body } = await gateway.request('GET', `/v1/audit?run_id=${run_id}&event_type=message.transcribed`)
	t.match(body.events[0].payload.error, /status 401: e+/)
	t.strictSame(partsIn(body, providerKey), [])
})

void t.test('a revealed secret is redacted in an error of the provider', async (t) => {
	const server = await startModelServer()
	t.teardown(() => server.stop())
	server.on(
		'read it',
		{ tools: [{ name: 'vault_read', arguments: { name: 'GRANTED' } }] },
		{ status: 400, message: `${'m'.repeat(474)}${granted}` },
	)
	const config = `providers:\n  main: { kind: openai, base_url: "${server.url}", model: m, api_key: ${providerKey} }\n`
	const gateway = await startWithAgent(t, config)
	await addSecret(gateway, 'ada', 'GRANTED', granted, { reveal: true })
	const run = await completeRun(gateway, { prompt: 'read it' })
	t.match(run.error.message, /^main \(m\): 400 m{474}\[redacted:GRANTED\]$/)
	for (const path of [`/v1/runs/${run.run_id}`, '/v1/audit?limit=500'])
		t.strictSame(partsIn((await gateway.request('GET', path)).body, granted), [], path)
})
