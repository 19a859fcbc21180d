/** A conversation that is far longer than its model's window. `CONTEXT_TURNS` sets how long. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { follow } from '../../support/runs.ts'
import { ownWords } from '../../support/said.ts'

const WINDOW = 8_192
const TURNS = Number(process.env.CONTEXT_TURNS ?? 40)

interface Message {
	role: string
	content: string | null
	tool_calls?: { function: { name: string } }[]
}

interface Body {
	messages: Message[]
	tools?: unknown[]
}

/** Counts four characters of the whole request as a token, and refuses more than its window. */
async function startSmallModel(t: Test): Promise<{ url: string; requests: Body[]; refused: () => number }> {
	const requests: Body[] = []
	let refused = 0
	let calls = 0
	const server = createServer((request, response) => {
		void (async () => {
			let text = ''
			for await (const part of request.setEncoding('utf8')) text += String(part)
			const body = JSON.parse(text) as Body
			const tokens = Math.ceil(JSON.stringify([body.messages, body.tools]).length / 4)
			requests.push(body)
			if (tokens > WINDOW) {
				refused++
				const message = `This model's maximum context length is ${WINDOW} tokens; your request has ${tokens}.`
				response.writeHead(400, { 'content-type': 'application/json' })
				response.end(
					JSON.stringify({ error: { message, code: 'context_length_exceeded', type: 'invalid_request_error' } }),
				)
				return
			}
			response.writeHead(200, { 'content-type': 'text/event-stream' })
			const send = (delta: object, finish_reason: string | null, more = {}): void => {
				const chunk = {
					id: 'x',
					object: 'chat.completion.chunk',
					created: 0,
					model: 'small',
					choices: [{ index: 0, delta, finish_reason }],
					...more,
				}
				response.write(`data: ${JSON.stringify(chunk)}\n\n`)
			}
			const answer = answerTo(body.messages)
			const usage = { usage: { prompt_tokens: tokens, completion_tokens: 20, total_tokens: tokens + 20 } }
			if (typeof answer === 'string') {
				send({ role: 'assistant', content: answer }, null)
				send({}, 'stop', usage)
			} else {
				const call = { index: 0, id: `call_${++calls}x${Date.now().toString(36)}`, type: 'function', function: answer }
				send({ role: 'assistant', tool_calls: [call] }, null)
				send({}, 'tool_calls', usage)
			}
			response.end('data: [DONE]\n\n')
		})()
	})
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
	t.teardown(() => new Promise((resolve) => server.close(resolve).closeAllConnections()))
	return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, requests, refused: () => refused }
}

/** Looks a page up in each turn, and looks for what it was told long ago. */
function answerTo(messages: Message[]): string | { name: string; arguments: string } {
	const asked = messages.findLastIndex(({ role }) => role === 'user')
	const prompt = ownWords((messages[asked]?.content ?? '').replace(/^<earlier>[^]*?<\/earlier>\n\n/, ''))
	const results = messages.slice(asked + 1).filter(({ role }) => role === 'tool')
	if (!prompt.startsWith('What is the word')) {
		if (results.length === 0) return { name: 'ledger_page', arguments: JSON.stringify({ number: prompt.length }) }
		return `The page is read. ${'It says what it says. '.repeat(5)}`
	}
	if (results.length === 0) return { name: 'conversation_search', arguments: '{"query":"word of the harbour"}' }
	const [, run_id = ''] = /"run_id":"([^"]+)"/.exec(results[0]?.content ?? '') ?? []
	if (results.length === 1) return { name: 'conversation_read', arguments: JSON.stringify({ run_id, limit: 600 }) }
	return /word of the harbour is (\w+)/.exec(results[1]?.content ?? '')?.[1] ?? 'I do not know'
}

const ledger = `
export default {
	name: 'ledger',
	start(ctx) {
		const page = ({ number }, { run_id }) => 'Page ' + number + ' for ' + run_id + ': ' + 'a line of the ledger with some figures 12.50, '.repeat(30)
		ctx.primitive({ name: 'ledger.page', description: 'Reads a page.', parameters: ctx.joi.object({ number: ctx.joi.number() }), run: page })
	},
}
`

void t.test('a conversation never fails by its size, and nothing said in it is lost', async (t) => {
	const model = await startSmallModel(t)
	const gateway = await startGateway({
		config: `providers:\n  small:\n    kind: openai\n    base_url: ${model.url}\n    api_key: test\n    model: small\nplugins:\n  ledger: true\n`,
		files: { 'plugins/ledger/index.js': ledger },
	})
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada', {
		persona: 'You are Ada. Never speak of the weather.',
		config: { context: { tokens: WINDOW - 400 }, max_tokens: 400 },
	})
	let last = ''
	for (let turn = 1; turn <= TURNS; turn++) {
		const told = turn === 3 ? 'Remember: the word of the harbour is Heron.' : `Turn ${turn}: read the next page for me.`
		last = await ada.complete(turn === TURNS ? 'What is the word that I told you?' : told)
	}
	t.equal((await ada.read(last)).answer, 'Heron', 'a fact of turn 3 is found')
	const { conversation } = await ada.read(last)
	const { status, body } = await gateway.request('GET', `/v1/agents/ada/conversations/${conversation}/context`)
	t.equal(status, 200)
	t.equal((await gateway.request('GET', '/v1/agents/ada/conversations/nowhere/context')).status, 404)
	t.ok(body.tokens <= body.budget && body.budget <= WINDOW, 'the next request fits')
	t.equal(
		body.items.reduce((sum: number, { tokens }: { tokens: number }) => sum + tokens, 0),
		body.tokens,
	)
	t.match(body.items.map(({ kind }: { kind: string }) => kind).slice(0, 4), [
		'instructions',
		'tools',
		'earlier',
		'turn',
	])
	t.equal(model.refused(), 0, 'no request is over the window')
	t.ok(
		model.requests.every(({ messages }) =>
			messages[0]?.content?.startsWith('You are Ada. Never speak of the weather.'),
		),
	)
	t.ok(model.requests.length >= 2 * TURNS)
	const before = (messages: Message[]): string[] =>
		messages
			.slice(
				0,
				messages.findIndex(({ content }) => content?.includes('<context>\n')),
			)
			.map((one) => JSON.stringify(one))
	const same = model.requests.slice(1).filter(({ messages }, at) => {
		const next = messages.map((one) => JSON.stringify(one))
		return before(model.requests[at]?.messages ?? []).every((one, place) => next[place] === one)
	})
	const share = same.length / (model.requests.length - 1)
	t.ok(share >= 0.8, `${Math.round(share * 100)} % of the requests begin as the one before`)
	t.comment(`${model.requests.length} requests, ${Math.round(share * 100)} % begin as the one before`)
	t.ok(
		model.requests.some(({ messages }) => JSON.stringify(messages).includes('<earlier>')),
		'it was cut',
	)
	const shown = model.requests.at(-1)?.messages ?? []
	t.ok(
		shown.some(({ role, content }) => role === 'tool' && content?.includes('left out here; it begins: Page')),
		'stubs say what was there',
	)
})
