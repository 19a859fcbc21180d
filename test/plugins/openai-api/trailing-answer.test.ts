/** Requests that end with an answer: the agent continues it, or repeats it in the form that the request specifies. */
import type { OpenAI } from 'openai'
import t from 'tap'
import { refusal, startSurface } from './client.ts'
import { withoutAdditions } from '../../support/model-messages.ts'

type Messages = OpenAI.ChatCompletionMessageParam[]
type ScriptedAnswer = { content: string } | { toolCalls: { name: string; arguments: string; id: string }[] }

const surface = await startSurface(t)
const { gateway, model } = surface
const openai = surface.client()
await surface.agent('ada', { persona: 'You are Ada.' })
await surface.agent('off', { config: { provider: 'offline' } })

let script: ScriptedAnswer[] = []
/** Like providers that do not accept the beginning of an answer. */
model.mock.on({ predicate: () => true }, ({ messages }) =>
	messages.at(-1)?.role === 'assistant'
		? { error: { message: 'The conversation must end with a user message.', type: 'scripted' }, status: 400 }
		: (script.shift() ?? { content: 'Nothing was scripted.' }),
)

const CONTINUE = /^\[Remark of the gateway: [^]*continue exactly where it ended/
const IN_FORM = /^\[Remark of the gateway: [^]*in the form that the instructions require/
const PERSONA: [string, string] = ['system', 'You are Ada.']
const clock: OpenAI.ChatCompletionFunctionTool = { type: 'function', function: { name: 'clock' } }
const schema = {
	type: 'object',
	properties: { city: { type: 'string' } },
	required: ['city'],
	additionalProperties: false,
}

const story: Messages = [
	{ role: 'user', content: 'Tell a story.' },
	{ role: 'assistant', content: 'Once upon a time' },
]

/** The model's last request: roles, and texts or the names of called tools. */
function sent(): [role: string, content: unknown][] {
	return withoutAdditions(model.requests().at(-1)?.messages).map(({ role, content, tool_calls }) => [
		role,
		tool_calls ? tool_calls.map((call) => call.function.name).join() : content,
	])
}

void t.test('an answer is continued, streamed or not', async (t) => {
	script = [{ content: ' there was' }, { content: ' a king.' }]
	const messages: Messages = [{ role: 'user', content: 'Hello' }, { role: 'assistant', content: 'Good day.' }, ...story]
	const { data, response } = await openai.chat.completions.create({ model: 'ada', messages }).withResponse()
	t.match(data.choices, [{ finish_reason: 'stop', message: { content: ' there was' } }])
	const run = await surface.run(response.headers.get('x-svc-run-id') ?? '')
	t.match(run, { status: 'completed', prompt: 'Tell a story.', answer: ' there was' })
	const earlier = [PERSONA, ['user', 'Hello'], ['assistant', 'Good day.']]
	const latest = [
		['user', 'Tell a story.'],
		['assistant', 'Once upon a time'],
	]
	t.match(sent(), [...earlier, ...latest, ['user', CONTINUE]])
	t.equal(sent().length, 6)

	let text = ''
	for await (const { choices } of await openai.chat.completions.create({ model: 'ada', messages, stream: true }))
		text += choices[0]?.delta.content ?? ''
	t.equal(text, ' a king.')
})

void t.test('an answer is repeated as JSON, which is checked', async (t) => {
	script = [{ content: '{"town": "Bern"}' }, { content: '{"city": "Bern"}' }]
	const call = { id: 'c1', type: 'function' as const, function: { name: 'clock', arguments: '{}' } }
	const { choices } = await openai.chat.completions.create({
		model: 'ada',
		messages: [
			{ role: 'user', content: 'Where is it late?' },
			{ role: 'assistant', content: null, tool_calls: [call] },
			{ role: 'tool', tool_call_id: 'c1', content: 'Bern: 23:00' },
			{ role: 'assistant', content: 'In Bern.', name: 'agent' },
		],
		response_format: { type: 'json_schema', json_schema: { name: 'place', schema, strict: true } },
	})
	t.equal(choices[0]?.message.content, '{"city": "Bern"}')
	const [, ...messages] = sent()
	t.match(messages, [
		['user', 'Where is it late?'],
		['assistant', 'clock'],
		['tool', 'Bern: 23:00'],
		['assistant', 'In Bern.'],
		['user', IN_FORM],
		['assistant', '{"town": "Bern"}'],
		['user', /city is missing/],
	])
	t.equal(messages.length, 7)
})

void t.test("calls of the agent's and the client's tools can follow the answer", async (t) => {
	const note = { name: 'memory_stm_write', arguments: '{"key":"k","value":1}', id: 'm1' }
	script = [{ toolCalls: [note] }, { toolCalls: [{ name: 'clock', arguments: '{}', id: 'w1' }] }, { content: 'Noon.' }]
	const messages: Messages = [
		{ role: 'user', content: 'What time is it?' },
		{ role: 'assistant', content: 'I look.' },
	]
	const ask = async (fields: object = {}) =>
		(await openai.chat.completions.create({ model: 'ada', messages, tools: [clock], ...fields })).choices[0]
	const choice = await ask({ tool_choice: 'required' })
	const { message, finish_reason } = choice ?? {}
	const [call] = message?.tool_calls ?? []
	t.match([finish_reason, call], ['tool_calls', { function: { name: 'clock' } }])
	if (!message || !call) return
	const [, ...first] = sent()
	const before = [
		['user', 'What time is it?'],
		['assistant', 'I look.'],
	]
	t.match(first, [...before, ['user', IN_FORM], ['assistant', 'memory_stm_write'], ['tool', String]])
	t.equal(first.length, 5)

	messages.push(message, { role: 'tool', tool_call_id: call.id, content: '12:00' })
	t.equal((await ask())?.message.content, 'Noon.')
	const [, ...second] = sent()
	const calls = [
		['assistant', 'memory_stm_write'],
		['tool', String],
		['assistant', 'clock'],
		['tool', '12:00'],
	]
	t.match(second, [...before, ...calls], 'with the steps of the earlier run')
	t.equal(second.length, 6)
})

void t.test('responses continue an answer as well, and later responses can continue them', async (t) => {
	script = [{ content: ' there was' }, { content: '{"city": "Rome"}' }, { content: 'You are welcome.' }]
	const first = await openai.responses.create({
		model: 'ada',
		input: [
			{ role: 'user', content: 'Tell a story.' },
			{ role: 'assistant', content: 'Once upon a time' },
		],
	})
	t.equal(first.output_text, ' there was')
	t.match(sent(), [PERSONA, ['user', 'Tell a story.'], ['assistant', 'Once upon a time'], ['user', CONTINUE]])

	const second = await openai.responses.create({
		model: 'ada',
		previous_response_id: first.id,
		input: [{ role: 'developer', content: 'Where was that?' }],
		text: { format: { type: 'json_schema', name: 'place', schema, strict: true } },
	})
	t.equal(second.output_text, '{"city": "Rome"}')
	const turns = [
		['user', 'Tell a story.'],
		['assistant', 'Once upon a time'],
		['assistant', ' there was'],
	]
	t.match(sent(), [['system', /^You are Ada\.\n\nWhere was that\?/], ...turns, ['user', IN_FORM]])

	const third = await openai.responses.create({ model: 'ada', previous_response_id: second.id, input: 'Thanks.' })
	t.equal(third.output_text, 'You are welcome.')
	t.match(sent(), [PERSONA, ...turns, ['assistant', '{"city": "Rome"}'], ['user', 'Thanks.']])
	t.equal(sent().length, 6)
	const { conversation } = (await surface.runs('ada'))[0] ?? {}
	const { body } = await gateway.request('GET', `/v1/agents/ada/history?conversation=${conversation}`)
	t.strictSame(
		body.map(({ content }: { content: string }) => content),
		['Tell a story.', ' there was', '{"city": "Rome"}', 'Thanks.', 'You are welcome.'],
		'the prompt is in the history once',
	)
})

void t.test('a long answer is shortened in the middle', async (t) => {
	await surface.agent('small', { config: { context: { tokens: 12_000 } } })
	script = [{ content: 'for ever.' }]
	const content = `Once upon a time ${'and so on '.repeat(8_000)}they lived happily`
	await openai.chat.completions.create({
		model: 'small',
		messages: [
			{ role: 'user', content: 'Tell a story.' },
			{ role: 'assistant', content },
		],
	})
	const [, prompt, answer, remark] = sent()
	t.match(
		[prompt, remark],
		[
			['user', 'Tell a story.'],
			['user', CONTINUE],
		],
	)
	t.match(answer, ['assistant', /^Once upon a time [^]* are omitted here[^]* they lived happily$/])
	t.ok(String(answer?.[1]).length < content.length)
})

void t.test('the offline provider answers a request that ends with an answer', async (t) => {
	const { choices } = await openai.chat.completions.create({ model: 'off', messages: story })
	t.match(choices, [{ finish_reason: 'stop', message: { content: /offline provider received/ } }])
})

void t.test('a trailing answer is refused in a named conversation, or without a message of the user', async (t) => {
	const headers = { 'x-svc-conversation': 'holiday' }
	script = [{ content: 'Hello.' }]
	const kept = await openai.responses.create({ model: 'ada', input: 'Hello' }, { headers })
	const runs = (await surface.runs('ada')).length
	const input: OpenAI.Responses.ResponseInput = [{ role: 'assistant', content: 'And' }]
	const refused = { status: 400, type: 'invalid_request_error', message: /named conversation[^]*message of the user/ }
	for (const call of [
		openai.chat.completions.create({ model: 'ada', messages: story }, { headers }),
		openai.responses.create({ model: 'ada', input: [{ role: 'user', content: 'x' }, ...input] }, { headers }),
		openai.responses.create({ model: 'ada', input, previous_response_id: kept.id }),
	])
		t.match(await refusal(call), refused)
	t.match(await refusal(openai.responses.create({ model: 'ada', input })), {
		status: 400,
		message: /must contain a message of the user/,
	})
	t.equal((await surface.runs('ada')).length, runs, 'none of them started a run')
})
