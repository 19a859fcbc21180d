/**
 * A run with reasoning and two tool calls in each dialect, killed between the calls and continued by another process: what the
 * provider must see again comes back as it was.
 */
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { LLMock } from '@copilotkit/aimock'
import t from 'tap'
import type { Test } from 'tap'
import { makeHome, send, startHere } from '../../support/gateway.ts'
import type { KillableGateway } from '../../support/gateway.ts'
import { spawnGateway } from '../../support/process.ts'
import { eventually } from '../../support/wait.ts'

/** What the requests of all dialects hold, as far as it matters here. */
interface Said {
	role?: string
	type?: string
	reasoning_content?: string
	thoughtSignature?: string
	content?: Said[]
	parts?: Said[]
}

interface Dialect {
	model: string
	path: string
	/** What a request brings back of the earlier answers. */
	back(body: Record<string, Said[]>): unknown[]
}

const dialects: Record<string, Dialect> = {
	openai: {
		model: 'deepseek-reasoner',
		path: '/v1',
		back: ({ messages = [] }) =>
			messages.filter(({ role }) => role === 'assistant').map(({ reasoning_content }) => reasoning_content),
	},
	'openai-responses': {
		model: 'gpt-5-mini',
		path: '/v1',
		back: ({ input = [] }) => input.filter(({ type }) => type === 'reasoning'),
	},
	anthropic: {
		model: 'claude-sonnet-4-5',
		path: '/v1',
		back: ({ messages = [] }) =>
			messages.flatMap(({ content = [] }) => content.filter(({ type }) => type === 'thinking')),
	},
	google: {
		model: 'gemini-2.5-pro',
		path: '/v1beta',
		back: ({ contents = [] }) =>
			contents.flatMap(({ parts = [] }) => parts.flatMap(({ thoughtSignature = [] }) => thoughtSignature)),
	},
}

void t.test('reasoning survives a kill in each dialect', { timeout: 300_000 }, async (t) => {
	const server = await recorded(t)
	const providers = Object.entries(dialects).map(
		([kind, { model, path }]) =>
			`  ${kind}: {kind: ${kind}, base_url: "${server.url}/${kind}${path}", api_key: k-${kind}-0123, model: ${model}, params: {reasoning_effort: low}}\n`,
	)
	const home = makeHome({ config: `default_provider: openai\nproviders:\n${providers.join('')}` })
	let gateway: KillableGateway = await spawnGateway(home)
	t.teardown(() => gateway.kill())
	const runs = new Map<string, string>()
	for (const kind of Object.keys(dialects)) {
		await send(`${gateway.url}/v1/agents`, 'POST', { body: { name: kind, config: { provider: kind } } })
		const { body } = await send(`${gateway.url}/v1/agents/${kind}/runs`, 'POST', { body: { prompt: 'Write twice.' } })
		runs.set(kind, body.run_id)
	}
	// Each has made its first call and asks for the second, which is held back.
	await eventually(() => Object.keys(dialects).every((kind) => server.of(kind).length === 2))
	await gateway.kill()
	server.go()
	gateway = await startHere(home)
	for (const [kind, run_id] of runs) {
		await t.test(kind, async (t) => {
			const run = await eventually(
				async () => (await send(`${gateway.url}/v1/runs/${run_id}`, 'GET')).body,
				({ status }) => status === 'completed' || status === 'failed',
			)
			t.match(run, { status: 'completed', answer: 'Written twice.', error: null })
			const [, held, again, last] = server.of(kind)
			t.equal(again?.text, held?.text, 'the request is the same, byte by byte')
			const { back } = dialects[kind] as Dialect
			const bodyOf = (asked: Recorded | undefined) => JSON.parse(asked?.text ?? '') as Record<string, Said[]>
			const [one, two] = [back(bodyOf(again)), back(bodyOf(last))]
			t.equal(one.length, 1)
			t.equal(two.length, 2)
			t.strictSame(two[0], one[0])
			const said = stringsIn(one[0])
			t.ok(said.length > 0)
			for (const text of said) t.ok(server.of(kind)[0]?.answer().includes(text), `as the server said it: ${text}`)
			const audit = (await send(`${gateway.url}/v1/audit?run_id=${run_id}&limit=100`, 'GET')).body
			const events = audit.events as { event_type: string; payload: { content: string } }[]
			const thought = events.filter((one) => one.event_type === 'message.reasoning').map((one) => one.payload.content)
			t.strictSame(thought.toReversed(), ['I think of 1.', 'I think of 2.', 'I think of 3.'])
			t.notMatch(JSON.stringify(events), /provider_state|SIGNATURE|encrypted_content/)
		})
	}
})

interface Recorded {
	/** The body of the request. */
	text: string
	/** All text that the server answered, without the borders of its pieces. */
	answer(): string
}

/** aimock, and before it what records, holds each second request until `go`, and adds the signatures that aimock's Gemini lacks. */
async function recorded(t: Test): Promise<{ url: string; of(kind: string): Recorded[]; go(): void }> {
	const mock = new LLMock({ port: 0, host: '127.0.0.1', logLevel: 'silent' })
	for (const n of [1, 2, 3]) {
		const call = { name: 'memory_stm_write', arguments: JSON.stringify({ key: `k${n}`, value: n }) }
		mock.on({ predicate: (request) => request.messages.filter((one) => one.role === 'tool').length === n - 1 }, {
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
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
	t.teardown(() => {
		server.close()
		server.closeAllConnections()
	})
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		of: (kind) => requests.get(kind) ?? [],
		go: () => (isHolding = false),
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
