/** The form of an answer: JSON of a schema, or a call of one of the client's tools. */
import type { OpenAI } from 'openai'
import t from 'tap'
import { refusal, startSurface, userMessages } from './client.ts'

const surface = await startSurface(t)
const { model } = surface
const openai = surface.client()
await surface.agent('ada', { persona: 'You are Ada.' })

const schema = {
	type: 'object',
	properties: { city: { type: 'string' }, degrees: { type: 'integer' } },
	required: ['city', 'degrees'],
	additionalProperties: false,
}
const asSchema = { type: 'json_schema' as const, json_schema: { name: 'weather', schema, strict: true } }
const usage = { prompt_tokens: 10, completion_tokens: 2 }
const right = '{"city": "Bern", "degrees": 7}'
const tool = (name: string): OpenAI.ChatCompletionFunctionTool => ({
	type: 'function',
	function: { name, parameters: { type: 'object', properties: {} } },
})
/** The bodies of the model's requests, with the fields that aimock does not know. */
const sent = (prompt: string) =>
	model.requests(prompt) as unknown as {
		messages: { role: string; content: string }[]
		response_format?: unknown
		tool_choice?: unknown
		tools?: { function: { name: string } }[]
	}[]

void t.test('a JSON schema is passed on and checked, and an invalid answer is requested again', async (t) => {
	model.on(
		'cold in Bern',
		{ text: '{"city": "Bern"}', usage },
		{ text: `Here it is:\n\n\`\`\`json\n${right}\n\`\`\``, usage },
	)
	model.on(/in the JSON, degrees is missing/, { text: `Here it is:\n\n\`\`\`json\n${right}\n\`\`\``, usage })
	const answer = await openai.chat.completions.create({
		model: 'ada',
		messages: userMessages('cold in Bern'),
		response_format: asSchema,
	})
	t.equal(answer.choices[0]?.message.content, right, 'without the text around it')
	t.strictSame(answer.usage, { prompt_tokens: 20, completion_tokens: 4, total_tokens: 24 }, 'of both calls')
	const [first] = sent('cold in Bern')
	t.strictSame(first?.response_format, asSchema)
	t.match(first?.messages[0]?.content, /^You are Ada\.\n\nYour final answer is read by a program[^]*"degrees"/)
	const [again] = sent('in the JSON, degrees is missing')
	t.match(again?.messages.slice(-2), [{ role: 'assistant', content: '{"city": "Bern"}' }, { role: 'user' }])
})

void t.test('after two more invalid answers the run fails', async (t) => {
	model.on('never right', 'No.')
	model.on(/it must be one JSON value/, '{"city": 5, "degrees": 1}')
	model.on(/city must be string/, 'No, again.')
	const failed = await refusal(
		openai.chat.completions.create({ model: 'ada', messages: userMessages('never right'), response_format: asSchema }),
	)
	t.match(failed, { status: 502, type: 'server_error', code: 'model_output_invalid', message: /one JSON value/ })
	t.equal(failed.headers?.get('x-should-retry'), 'false')
})

void t.test('a server that does not support response_format is called without it', async (t) => {
	model.on('plain server', { status: 400, message: 'response_format is not supported by this model' }, right)
	const ask = () =>
		openai.responses.create({
			model: 'ada',
			input: 'plain server',
			text: { format: { type: 'json_schema', name: 'weather', schema, strict: true } },
		})
	const answer = await ask()
	t.equal(answer.output_text, right)
	t.match(answer.text?.format, { type: 'json_schema', name: 'weather' })
	const [first, second] = sent('plain server')
	t.match(first?.response_format, { type: 'json_schema', json_schema: { name: 'weather' } })
	t.equal(second?.response_format, undefined)
	t.ok((second?.tools?.length ?? 0) > 0, 'the agent keeps its tools')
})

void t.test("text beside the agent's own calls is not part of the JSON, streamed or not", async (t) => {
	const note = { name: 'memory_stm_write', arguments: { key: 'k', value: 1 }, id: 'm' }
	for (const prompt of ['note it', 'note it in a stream']) model.on(prompt, { text: 'I write.', tools: [note] }, right)
	const body = { model: 'ada', response_format: { type: 'json_object' as const } }
	const complete = await openai.chat.completions.create({ ...body, messages: userMessages('note it') })
	t.equal(complete.choices[0]?.message.content, right)
	let streamed = ''
	const messages = userMessages('note it in a stream')
	for await (const { choices } of await openai.chat.completions.create({ ...body, messages, stream: true }))
		streamed += choices[0]?.delta.content ?? ''
	t.equal(streamed, right)
	t.match(sent('note it in a stream')[0], { response_format: { type: 'json_object' } })

	const events = openai.responses.stream({
		model: 'ada',
		input: 'note it in a stream',
		text: { format: { type: 'json_object' } },
	})
	t.equal((await events.finalResponse()).output_text, right)
})

void t.test('a json_object can have a schema, which is checked', async (t) => {
	model.on('beside the type', '{"city": "Bern", "degrees": "7"}')
	model.on(/degrees must be integer/, right)
	const format = { type: 'json_object', schema } as { type: 'json_object' }
	const ask = (response_format: typeof format) =>
		openai.chat.completions.create({ model: 'ada', messages: userMessages('beside the type'), response_format })
	t.equal((await ask(format)).choices[0]?.message.content, right)
	t.match(sent('beside the type')[0]?.response_format, { type: 'json_schema', json_schema: { name: 'answer', schema } })
	const refused = await refusal(ask({ ...format, type: 'text' } as never))
	t.match(refused, { status: 400, param: 'response_format.schema' })
})

void t.test('an answer that was cut off is returned as it is', async (t) => {
	model.on('cut off', { text: '{"city": "B', finishReason: 'length' })
	const { choices } = await openai.chat.completions.create({
		model: 'ada',
		messages: userMessages('cut off'),
		response_format: asSchema,
		max_tokens: 5,
	})
	t.match(choices, [{ finish_reason: 'length', message: { content: '{"city": "B' } }])
})

void t.test("a named tool must be called, and is the only one of the client's tools that is offered", async (t) => {
	model.on('by name', 'I would rather talk.', 'unused')
	model.on(/it must be a call of clock/, { tools: [{ name: 'clock', arguments: {}, id: 'c' }] })
	const { choices } = await openai.chat.completions.create({
		model: 'ada',
		messages: userMessages('by name'),
		tools: [tool('clock'), tool('lamp')],
		tool_choice: { type: 'function', function: { name: 'clock' } },
	})
	t.match(choices[0], { finish_reason: 'tool_calls', message: { tool_calls: [{ function: { name: 'clock' } }] } })
	const [first] = sent('by name')
	t.strictSame(first?.tool_choice, { type: 'function', function: { name: 'clock' } })
	const offered = first?.tools?.map((offer) => offer.function.name) ?? []
	t.ok(offered.includes('clock') && !offered.includes('lamp'))

	model.on('one of them', { tools: [{ name: 'lamp', arguments: {}, id: 'l' }] })
	const request = { model: 'ada', messages: userMessages('one of them'), tools: [tool('clock'), tool('lamp')] }
	await openai.chat.completions.create({ ...request, tool_choice: 'required' })
	t.equal(sent('one of them')[0]?.tool_choice, 'required')
	const allowed = { mode: 'required' as const, tools: [{ type: 'function', function: { name: 'lamp' } }] }
	await openai.chat.completions.create({
		...request,
		tool_choice: { type: 'allowed_tools', allowed_tools: allowed },
	})
	t.match(sent('one of them')[1]?.tool_choice, { function: { name: 'lamp' } })
})

void t.test('a server that does not support a forced call still gets the tools', async (t) => {
	model.on(
		'not forced',
		{ status: 400, message: 'tool_choice required is not supported' },
		{
			tools: [{ name: 'clock', arguments: {}, id: 'c' }],
		},
	)
	const { output } = await openai.responses.create({
		model: 'ada',
		input: 'not forced',
		tools: [{ type: 'function', name: 'clock', parameters: null, strict: null }],
		tool_choice: { type: 'function', name: 'clock' },
	})
	t.match(output, [{ type: 'function_call', name: 'clock' }])
	const [, second] = sent('not forced')
	t.equal(second?.tool_choice, undefined)
	t.ok(second?.tools?.some((offer) => offer.function.name === 'clock'))
})

void t.test('an invalid form is refused', async (t) => {
	const create = (fields: object) =>
		refusal(openai.chat.completions.create({ model: 'ada', messages: userMessages('no sense'), ...fields }))
	const respond = (fields: object) => refusal(openai.responses.create({ model: 'ada', input: 'no sense', ...fields }))
	const large = { type: 'object', description: 'x'.repeat(33_000) }
	const cases: [Promise<{ status?: number | undefined }>, string][] = [
		[create({ response_format: { type: 'yaml' } }), 'response_format.type'],
		[create({ response_format: { type: 'json_schema' } }), 'response_format.json_schema'],
		[
			create({ response_format: { type: 'json_schema', json_schema: { name: 'a b', schema } } }),
			'response_format.json_schema.name',
		],
		[
			create({ response_format: { type: 'json_schema', json_schema: { name: 'a', schema: large } } }),
			'response_format.json_schema.schema',
		],
		[create({ tool_choice: 'required' }), 'tool_choice'],
		[create({ tool_choice: 'always', tools: [tool('clock')] }), 'tool_choice'],
		[create({ tool_choice: tool('lamp'), tools: [tool('clock')] }), 'tool_choice'],
		[create({ tool_choice: { type: 'allowed_tools' }, tools: [tool('clock')] }), 'tool_choice'],
		[respond({ text: { format: { type: 'json_schema', schema } } }), 'text.format.name'],
		[respond({ text: { format: { type: 'json_schema', name: 'a' } } }), 'text.format.schema'],
		[respond({ tool_choice: { type: 'web_search' }, tools: [{ type: 'web_search' }] }), 'tool_choice'],
	]
	for (const [refused, param] of cases) t.match(await refused, { status: 400, param }, param)
	t.equal(sent('no sense').length, 0)
})
