import t from 'tap'
import type { ModelAnswer, ToolSpec } from '../../core/protocol.ts'
import type { ModelOrder } from '../../sandbox/order.ts'
import { runLoop } from '../../sandbox/loop.ts'
import { offline } from '../../sandbox/models/offline.ts'
import type { ModelReply, Turn } from '../../sandbox/models/provider.ts'

const order: ModelOrder = { provider: 'offline', kind: 'offline', model: 'offline', timeout_ms: 1_000 }

void t.test('a line with /tool calls that tool with its arguments unchanged', async (t) => {
	const answer = await ask('Please do this:\n/tool memory.stm_write {"key": "a", "value": {"b": [1]}}', [
		tool('memory.stm_write'),
	])
	t.match(answer, {
		content: '',
		tool_calls: [{ name: 'memory.stm_write', arguments: '{"key": "a", "value": {"b": [1]}}' }],
		finish_reason: 'tool_calls',
	})
})

void t.test('a tool is found by its canonical name, by the name that models see, and by an alias', async (t) => {
	const tools = [tool('memory.stm_read'), tool('skill__weather_report', ['Weather report'])]
	for (const [line, name] of [
		['/tool memory.stm_read {}', 'memory.stm_read'],
		['/tool memory_stm_read', 'memory.stm_read'],
		['  /tool   Weather report   {"city": "Ulm"}', 'skill__weather_report'],
		['/tool Weather report{"city": "Ulm"}\r', 'skill__weather_report'],
	] as const) {
		t.equal((await ask(line, tools)).tool_calls[0]?.name, name, JSON.stringify(line))
	}
})

void t.test('an unknown name is called, too', async (t) => {
	t.match((await ask('/tool no.such {}', [])).tool_calls, [{ name: 'no.such', arguments: '{}' }])
})

void t.test('omitted arguments become an empty object, invalid ones stay unchanged', async (t) => {
	t.equal((await ask('/tool a', [])).tool_calls[0]?.arguments, '{}')
	t.equal((await ask('/tool a {"b":', [])).tool_calls[0]?.arguments, '{"b":')
})

void t.test('a line that only resembles a tool line is plain text', async (t) => {
	for (const line of ['/tools a {}', '/tool', '/tool   ', 'use /tool a {}', '/tool {"a":1}']) {
		t.strictSame((await ask(line, [])).tool_calls, [], JSON.stringify(line))
	}
})

void t.test('several tool lines are called in order, and the answer lists their results', async (t) => {
	const outcome = await runLoop(
		{
			run_id: 'r',
			agent_id: 'a',
			models: [order],
			system: null,
			history: [{ role: 'user', content: '/tool earlier {}' }],
			prompt: '/tool first {"n":1}\n/tool second {"n":2}',
			tools: [],
			journal: [],
			limits: { steps: 5, tokens: 10_000, wall_time_s: 10 },
			remaining_ms: 10_000,
		},
		{
			signal: new AbortController().signal,
			emit: () => {},
			stream: () => {},
			sent: () => {},
			call: (async (method: string, params: { call?: { name: string } }) =>
				method === 'model'
					? null
					: { status: 'done', ok: params.call?.name === 'first', content: `{"of":"${params.call?.name}"}` }) as never,
		},
		(request, io) => offline.ask(order, request, { signal: io.signal, onText: io.stream }),
	)
	t.match(outcome, {
		status: 'completed',
		answer: { content: 'first answered: {"of":"first"}\nsecond failed: {"of":"second"}' },
	})
})

void t.test('a plain prompt is answered from memory if memory.recall is offered', async (t) => {
	const tools = [tool('memory.recall')]
	const first = await ask('What is my cat called?', tools)
	t.match(first.tool_calls, [{ name: 'memory.recall', arguments: '{"query":"What is my cat called?"}' }])
	const second = await ask('What is my cat called?', tools, [
		{ role: 'assistant', content: '', tool_calls: first.tool_calls },
		result('[{"id":"1","content":"The cat is called Murr.","similarity":0.9}]'),
	])
	t.equal(second.content, 'From memory:\n- The cat is called Murr.')
})

void t.test('the answer omits memories that are much less similar than the best one', async (t) => {
	const found = (content: string, similarity: number) => ({ content, similarity })
	const memories = [
		found('The cat is Murr.', 0.7),
		found('The dog is Rex.', 0.4),
		found('It rains.', 0.1),
		found('No.', 0),
	]
	const turns: Turn[] = [
		{ role: 'assistant', content: '', tool_calls: [{ id: 'offline_1', name: 'memory.recall', arguments: '{}' }] },
		result(JSON.stringify({ memories })),
	]
	const { content } = await ask('What is my cat called?', [tool('memory.recall')], turns)
	t.equal(content, 'From memory:\n- The cat is Murr.\n- The dog is Rex.')
})

void t.test('a prompt without a matching memory is echoed', async (t) => {
	const tools = [tool('memory.recall')]
	for (const found of [
		'[]',
		'{"results":[]}',
		'nothing',
		'{"error":{"code":"tool_failed"}}',
		'[1, {"content": 2}]',
		'null',
	]) {
		const answer = await ask('Hello there', tools, [
			{ role: 'assistant', content: '', tool_calls: (await ask('Hello there', tools)).tool_calls },
			result(found),
		])
		t.match(answer.content, /offline provider received: Hello there\n/, found)
	}
})

void t.test('the echo names the offline provider and states how to connect a real model', async (t) => {
	const { content, finish_reason } = await ask('Hello there', [])
	t.match(content, 'Hello there')
	t.match(content, /offline provider/)
	t.match(content, /svc init.*providers in gateway\.yaml/)
	t.equal(finish_reason, 'stop')
})

void t.test('the same prompt gets the same answer, whose streamed pieces add up to it', async (t) => {
	const pieces: string[] = []
	const first = await ask('Say  something\n\nlong ', [], [], (text) => pieces.push(text))
	t.strictSame(await ask('Say  something\n\nlong ', []), first)
	t.ok(pieces.length > 10)
	t.equal(pieces.join(''), first.content)
})

void t.test('usage is estimated, so that limits apply', async (t) => {
	const { usage } = await ask('x'.repeat(4_000), [])
	t.equal(usage.input_tokens, 1_000)
	t.ok(usage.output_tokens > 500)
})

void t.test('an abort ends the answer', async (t) => {
	const controller = new AbortController()
	const reply = await replyTo('Hello', [], [], () => controller.abort(), controller.signal)
	t.equal(reply.status, 'failed')
})

void t.test('a prompt crafted to be slow to parse is parsed at once', async (t) => {
	const answer = await ask(
		`/tool${' '.repeat(100_000)}\n${'/tool a '.repeat(10_000)}\n/tool b ${'{'.repeat(100_000)}`,
		[],
	)
	t.equal(answer.tool_calls.length, 1)
})

function tool(name: string, aliases?: string[]): ToolSpec {
	return { name, description: name, parameters: { type: 'object' }, ...(aliases && { aliases }) }
}

function result(content: string): Turn {
	return { role: 'tool', call_id: 'offline_1', name: 'memory.recall', ok: true, content }
}

function replyTo(
	prompt: string,
	tools: ToolSpec[],
	later: Turn[] = [],
	onText: (text: string) => void = () => {},
	signal: AbortSignal = new AbortController().signal,
): Promise<ModelReply> {
	return offline.ask(
		order,
		{ system: null, turns: [{ role: 'user', content: prompt }, ...later], tools },
		{ signal, onText },
	)
}

/** The answer to a prompt, and to the turns after it. */
async function ask(...args: Parameters<typeof replyTo>): Promise<ModelAnswer> {
	const reply = await replyTo(...args)
	if (reply.status === 'failed') throw new Error(reply.failure.message)
	return reply.answer
}
