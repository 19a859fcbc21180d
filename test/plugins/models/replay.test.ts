/**
 * A run with reasoning and two tool calls in each dialect, killed between the calls and continued by another process: the provider
 * gets back its reasoning unchanged.
 */
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { LLMock } from '@copilotkit/aimock'
import t from 'tap'
import type { Test } from 'tap'
import { endedRun } from '../../support/ended-run.ts'
import { makeHome, send, startHere } from '../../support/gateway.ts'
import type { KillableGateway } from '../../support/gateway.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { spawnGateway } from '../../support/process.ts'
import { eventually } from '../../support/wait.ts'

/** The fields of a message or a part in any dialect that this test reads. */
interface Part {
	role?: string
	type?: string
	reasoning_content?: string
	thoughtSignature?: string
	content?: Part[]
	parts?: Part[]
}

interface Dialect {
	model: string
	path: string
	/** The reasoning of earlier answers in a request. */
	reasoningIn(body: Record<string, Part[]>): unknown[]
}

const dialects: Record<string, Dialect> = {
	openai: {
		model: 'deepseek-reasoner',
		path: '/v1',
		reasoningIn: ({ messages = [] }) =>
			messages.filter(({ role }) => role === 'assistant').map(({ reasoning_content }) => reasoning_content),
	},
	'openai-responses': {
		model: 'gpt-5-mini',
		path: '/v1',
		reasoningIn: ({ input = [] }) => input.filter(({ type }) => type === 'reasoning'),
	},
	anthropic: {
		model: 'claude-sonnet-4-5',
		path: '/v1',
		reasoningIn: ({ messages = [] }) =>
			messages.flatMap(({ content = [] }) => content.filter(({ type }) => type === 'thinking')),
	},
	google: {
		model: 'gemini-2.5-pro',
		path: '/v1beta',
		reasoningIn: ({ contents = [] }) =>
			contents.flatMap(({ parts = [] }) => parts.flatMap(({ thoughtSignature = [] }) => thoughtSignature)),
	},
}

void t.test('reasoning survives a kill in each dialect', { timeout: 300_000 }, async (t) => {
	const server = await startRecordingServer(t)
	const providers = Object.entries(dialects).map(
		([kind, { model, path }]) =>
			`  ${kind}: {kind: ${kind}, base_url: "${server.url}/${kind}${path}", api_key: k-${kind}-0123, model: ${model}, params: {reasoning_effort: low}}\n`,
	)
	const home = makeHome({ config: `default_provider: openai\nproviders:\n${providers.join('')}` }, t)
	let gateway: KillableGateway = await spawnGateway(home)
	t.teardown(() => gateway.kill())
	const runs = new Map<string, string>()
	for (const kind of Object.keys(dialects)) {
		await send(`${gateway.url}/v1/agents`, 'POST', { body: { name: kind, config: { provider: kind } } })
		const { body } = await send(`${gateway.url}/v1/agents/${kind}/runs`, 'POST', { body: { prompt: 'Write twice.' } })
		runs.set(kind, body.run_id)
	}
	// Each run has made its first call and waits for the answer to the second, which the server withholds.
	await eventually(() => Object.keys(dialects).every((kind) => server.of(kind).length === 2))
	await gateway.kill()
	server.release()
	gateway = await startHere(home)
	for (const [kind, run_id] of runs) {
		await t.test(kind, async (t) => {
			const run = await endedRun(gateway.url, run_id)
			t.match(run, { status: 'completed', answer: 'Written twice.', error: null })
			const [, interrupted, repeated, last] = server.of(kind)
			t.equal(repeated?.text, interrupted?.text, 'the repeated request is identical')
			const { reasoningIn } = dialects[kind] as Dialect
			const bodyOf = (request: Recorded | undefined) => JSON.parse(request?.text ?? '') as Record<string, Part[]>
			const [second, third] = [reasoningIn(bodyOf(repeated)), reasoningIn(bodyOf(last))]
			t.equal(second.length, 1)
			t.equal(third.length, 2)
			t.strictSame(third[0], second[0])
			const texts = stringsIn(second[0])
			t.ok(texts.length > 0)
			for (const text of texts) t.ok(server.of(kind)[0]?.answer().includes(text), `as the server sent it: ${text}`)
			const audit = (await send(`${gateway.url}/v1/audit?run_id=${run_id}&limit=100`, 'GET')).body
			const events = audit.events as { event_type: string; payload: { content: string } }[]
			const reasoning = events
				.filter(({ event_type }) => event_type === 'message.reasoning')
				.map(({ payload }) => payload.content)
			t.strictSame(reasoning.toReversed(), ['I think of 1.', 'I think of 2.', 'I think of 3.'])
			t.notMatch(JSON.stringify(events), /provider_state|SIGNATURE|encrypted_content/)
		})
	}
})

interface Recorded {
	/** The body of the request. */
	text: string
	/** All text of the response, with the pieces of its stream joined. */
	answer(): string
}

/**
 * aimock behind a proxy, which records, never answers the second request of a dialect until `release`, and adds the signatures that
 * aimock's Gemini lacks.
 */
async function startRecordingServer(t: Test): Promise<{ url: string; of(kind: string): Recorded[]; release(): void }> {
	const mock = new LLMock({ port: 0, host: '127.0.0.1', logLevel: 'silent' })
	for (const n of [1, 2, 3]) {
		const call = { name: 'memory_stm_write', arguments: JSON.stringify({ key: `k${n}`, value: n }) }
		mock.on({ predicate: (request) => request.messages.filter(({ role }) => role === 'tool').length === n - 1 }, {
			reasoning: `I think of ${n}.`,
			...(n < 3 ? { toolCalls: [call] } : { content: 'Written twice.' }),
			reasoningSignature: `SIGNATURE-${n}`,
		} as never)
	}
	await mock.start()
	t.teardown(() => mock.stop())
	const requests = new Map<string, Recorded[]>()
	let isHolding = true
	const server = createServer((request, response) => {
		let text = ''
		request.on('data', (part) => (text += part))
		request.on('end', () => void forward(request.url ?? '', text, response))
	})
	const forward = async (path: string, text: string, response: ServerResponse): Promise<void> => {
		const [, kind = '', rest = ''] = /^\/([^/]+)(\/.*)$/.exec(path) ?? []
		const list = requests.get(kind) ?? []
		requests.set(kind, list)
		let answer = ''
		list.push({ text, answer: () => answer })
		if (isHolding && list.length === 2) return
		const headers = { 'content-type': 'application/json', authorization: 'Bearer k', 'x-api-key': 'k' }
		const reply = await fetch(mock.url + rest, { method: 'POST', body: text, headers })
		answer = (await reply.text()).replaceAll(
			'{"functionCall":',
			`{"thoughtSignature":"SIGNATURE-${list.length}","functionCall":`,
		)
		response.writeHead(reply.status, { 'content-type': reply.headers.get('content-type') ?? '' }).end(answer)
		answer = stringsIn(answer.split('\n').map((line) => asJson(line.replace(/^data: /, '')))).join('')
	}
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	return {
		url,
		of: (kind) => requests.get(kind) ?? [],
		release: () => (isHolding = false),
	}
}

function asJson(text: string): unknown {
	try {
		return JSON.parse(text)
	} catch {
		return null
	}
}

function stringsIn(value: unknown): string[] {
	if (typeof value === 'string') return [value]
	return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : []
}
