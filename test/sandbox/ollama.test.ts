/** Ollama's native API, whose requests set the context size. */
import { LLMock } from '@copilotkit/aimock'
import t from 'tap'
import type { ToolSpec } from '../../core/protocol.ts'
import type { ModelOrder } from '../../sandbox/order.ts'
import { ollama } from '../../sandbox/models/ollama.ts'
import type { ModelReply, ModelRequest } from '../../sandbox/models/provider.ts'
import { startScriptedModels } from '../support/scripted-model.ts'
import type { ScriptedReply } from '../support/scripted-model.ts'

const tools: ToolSpec[] = [{ name: 'memory.stm_read', description: 'Reads.', parameters: { type: 'object' } }]
const question: ModelRequest = { system: 'You are Ada.', turns: [{ role: 'user', content: 'What is it?' }], tools }

const models = await startScriptedModels()
t.teardown(() => models.stop())

const ndjson = (...chunks: object[]): ScriptedReply => ({
	text: chunks.map((chunk) => JSON.stringify(chunk)).join('\n'),
	type: 'application/x-ndjson',
})
const yes = ndjson({ message: { content: 'Yes.' }, done: false }, { done: true, done_reason: 'stop' })

function ask(
	change: Partial<ModelOrder>,
	request = question,
	onText: (text: string) => void = () => {},
): Promise<ModelReply> {
	const order: ModelOrder = { provider: 'p', kind: 'ollama', model: 'qwen3', timeout_ms: 30_000, ...change }
	return ollama.ask(order, request, { signal: new AbortController().signal, onText })
}

void t.test('text and calls of an independent implementation of the server are read', async (t) => {
	const server = new LLMock({ port: 0, logLevel: 'silent', chunkSize: 4 })
	server.on(
		{ predicate: ({ messages }) => messages.some(({ role }) => role === 'tool') },
		{ content: 'It is a longer answer.' },
	)
	server.on({ predicate: () => true }, { toolCalls: [{ name: 'memory_stm_read', arguments: '{"key":"it"}' }] })
	await server.start()
	t.teardown(() => server.stop())
	const base_url = `${server.url}/api`
	const first = await ask({ base_url })
	t.match(first, {
		status: 'answered',
		answer: { tool_calls: [{ name: 'memory.stm_read', arguments: '{"key":"it"}' }], finish_reason: 'tool_calls' },
	})
	const pieces: string[] = []
	const turns: ModelRequest['turns'] = [
		...question.turns,
		{ role: 'assistant', content: '', tool_calls: [{ id: 'c1', name: 'memory.stm_read', arguments: '{"key":"it"}' }] },
		{ role: 'tool', call_id: 'c1', name: 'memory.stm_read', ok: true, content: 'blue' },
	]
	const second = await ask({ base_url }, { ...question, turns }, (text) => pieces.push(text))
	t.match(second, { status: 'answered', answer: { content: 'It is a longer answer.', finish_reason: 'stop' } })
	t.ok(pieces.length > 3, 'the answer is streamed')
})

void t.test('the context window and the parameters reach the server', async (t) => {
	const { url: base_url, requests } = models.add(() => yes)
	const params = { temperature: 0.2, max_tokens: 300, stop: 'END', seed: 7, reasoning_effort: 'low' }
	const extra_body = { keep_alive: '10m', options: { num_gpu: 1 } }
	t.match(await ask({ base_url, context_window: 12_288, params, extra_body }), { answer: { content: 'Yes.' } })
	t.match(requests[0], {
		path: '/chat',
		body: {
			model: 'qwen3',
			stream: true,
			think: true,
			keep_alive: '10m',
			options: { num_ctx: 12_288, num_predict: 300, temperature: 0.2, stop: ['END'], seed: 7, num_gpu: 1 },
			messages: [{ role: 'system', content: 'You are Ada.' }, { role: 'user' }],
			tools: [{ type: 'function', function: { name: 'memory_stm_read' } }],
		},
	})
	const sampling = { stop: ['X'], top_p: 0.5, presence_penalty: 1, frequency_penalty: 0.5, reasoning_effort: 'none' }
	await ask({ base_url, params: { ...params, seed: 8 }, sampling })
	t.match(requests.pop()?.body, {
		think: false,
		options: { temperature: 0.2, top_p: 0.5, stop: ['X'], seed: 8, presence_penalty: 1, frequency_penalty: 0.5 },
	})
	await ask({ base_url, model: 'gpt-oss:20b', params: { reasoning_effort: 'low' } })
	t.equal(requests[1]?.body.think, 'low')
})

void t.test('thinking is separate from the text, and is sent back to the same model', async (t) => {
	const { url: base_url, requests } = models.add(() =>
		ndjson(
			{ message: { thinking: 'Let me ' }, done: false },
			{ message: { thinking: 'look.' }, done: false },
			{ message: { content: '', tool_calls: [{ function: { name: 'memory_stm_read', arguments: {} } }] }, done: false },
			{ done: true, done_reason: 'stop', prompt_eval_count: 31, eval_count: 9 },
		),
	)
	const reply = await ask({ base_url })
	if (reply.status !== 'answered') throw new Error(JSON.stringify(reply))
	const { content, tool_calls, reasoning, usage, provider_state } = reply.answer
	t.strictSame([content, reasoning, usage], ['', 'Let me look.', { input_tokens: 31, output_tokens: 9 }])
	const turns: ModelRequest['turns'] = [
		...question.turns,
		{ role: 'assistant', content, tool_calls, ...(provider_state && { provider_state }) },
		{ role: 'tool', call_id: 'c1', name: 'memory.stm_read', ok: true, content: 'blue' },
	]
	await ask({ base_url }, { ...question, turns })
	t.match(requests[1]?.body.messages.slice(2), [
		{
			role: 'assistant',
			thinking: 'Let me look.',
			tool_calls: [{ function: { name: 'memory_stm_read', arguments: {} } }],
		},
		{ role: 'tool', tool_name: 'memory_stm_read', content: 'blue' },
	])
})

void t.test('errors have the message of the server, and unsupported fields are omitted', async (t) => {
	const { url: base_url, requests } = models.add(({ body }) => {
		if (body.think !== undefined) return { status: 400, json: { error: '"qwen3" does not support thinking' } }
		if (body.tools) return { status: 400, json: { error: 'qwen3 does not support tools' } }
		return yes
	})
	t.match(await ask({ base_url, params: { reasoning_effort: 'high' } }), { answer: { content: 'Yes.' } })
	t.equal(requests.length, 3)
	const missing = models.add(() => ({ status: 404, json: { error: 'model "qwen3" not found, try pulling it first' } }))
	t.match(await ask({ base_url: missing.url }), { failure: { code: 'model_rejected', message: /try pulling it/ } })
	const broken = models.add(() => ndjson({ message: { content: 'Ye' }, done: false }, { error: 'out of memory' }))
	t.match(await ask({ base_url: broken.url }), { failure: { message: /out of memory/ } })
	const cut = models.add(() => ndjson({ message: { content: 'Ye' }, done: false }))
	t.match(await ask({ base_url: cut.url }), { failure: { code: 'model_interrupted' } })
	const wrong = models.add(() => ({ text: 'Ollama is running' }))
	t.match(await ask({ base_url: wrong.url }), { failure: { message: /It ends in \/api/ } })
})

void t.test('a line in many chunks, and a last line without a line break, are read', async (t) => {
	const content = 'long '.repeat(200_000)
	const { url: base_url } = models.add(() =>
		ndjson({ message: { content }, done: false }, { message: { content: 'é.' }, done: true, done_reason: 'stop' }),
	)
	const reply = await ask({ base_url })
	if (reply.status !== 'answered') throw new Error(JSON.stringify(reply))
	t.ok(reply.answer.content === `${content}é.`, 'no character is lost')
})
