/** Tools of the client, in addition to those of the agent. */
import type { OpenAI } from 'openai'
import t from 'tap'
import { refusal, startSurface, userMessages } from './client.ts'
import { withoutAdditions } from '../../support/model-messages.ts'

type Messages = OpenAI.ChatCompletionMessageParam[]

const surface = await startSurface(t, '{user_is_conversation: true}')
const { gateway, model } = surface
const openai = surface.client()
await surface.agent('ada')
const weather: OpenAI.ChatCompletionFunctionTool = {
	type: 'function',
	function: {
		name: 'get_weather',
		description: 'The weather of a place.',
		parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
		strict: true,
	},
}
const clock: OpenAI.ChatCompletionFunctionTool = { type: 'function', function: { name: 'clock' } }
const usage = { prompt_tokens: 10, completion_tokens: 2 }
const toolOf = (city: string) => ({ name: 'get_weather', arguments: { city }, id: 'w1' })

/** Results for the tool calls of an assistant's message. */
function results(message: OpenAI.ChatCompletionMessage | undefined, ...contents: string[]): Messages {
	const calls = message?.tool_calls ?? []
	return calls.map(({ id }, at) => ({ role: 'tool', tool_call_id: id, content: contents[at] ?? '' }))
}

void t.test("a call of a client's tool ends the run, and its result continues with all earlier steps", async (t) => {
	model.on(
		'sunny in Rome',
		{
			text: 'I look.',
			tools: [{ name: 'memory_stm_write', arguments: { key: 'city', value: 'Rome' }, id: 'm1' }],
			usage,
		},
		{ tools: [toolOf('Rome')], usage },
		{ tools: [{ name: 'clock', arguments: {}, id: 'w1' }], usage },
		{ text: 'Yes, it is.', usage },
	)
	const messages: Messages = [
		{ role: 'user', content: 'Hello' },
		{ role: 'assistant', content: 'Hello.' },
		{ role: 'user', content: 'Is it sunny in Rome?' },
	]
	const ask = () =>
		openai.chat.completions.create({ model: 'svc/ada', messages, tools: [weather, clock] }).withResponse()
	const first = await ask()
	const [choice] = first.data.choices
	t.match(choice, {
		finish_reason: 'tool_calls',
		message: { content: 'I look.', tool_calls: [{ type: 'function', function: { name: 'get_weather' } }] },
	})
	const [call] = choice?.message.tool_calls ?? []
	t.strictSame(call?.type === 'function' && JSON.parse(call.function.arguments), { city: 'Rome' })
	t.ok(call && call.id.length <= 40, "within OpenAI's limit")
	t.strictSame(first.data.usage, { prompt_tokens: 20, completion_tokens: 4, total_tokens: 24 })
	const run_id = first.response.headers.get('x-svc-run-id') ?? ''
	t.match(await surface.run(run_id), { status: 'completed', answer: '' })

	messages.push(choice?.message ?? { role: 'user', content: '' }, ...results(choice?.message, 'Blue sky.'))
	const second = (await ask()).data.choices[0]
	t.match(second, { finish_reason: 'tool_calls', message: { content: null } })
	messages.push(second?.message ?? { role: 'user', content: '' }, ...results(second?.message, 'Noon.'))
	const third = await ask()
	t.match(third.data.choices[0], { finish_reason: 'stop', message: { content: 'Yes, it is.' } })
	t.strictSame(third.data.usage, { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 }, 'of this request alone')

	const sent = model.requests('sunny in Rome')
	t.equal(sent.length, 4)
	const names = sent[0]?.tools?.map((tool) => tool.function.name) ?? []
	t.ok(names.includes('get_weather') && names.includes('clock') && names.includes('memory_stm_write'))
	const last = withoutAdditions(sent[3]?.messages)
	t.strictSame(
		last.map(({ role, content, tool_calls }) => [role, tool_calls?.[0]?.function.name ?? content]),
		[
			['user', 'Hello'],
			['assistant', 'Hello.'],
			['user', 'Is it sunny in Rome?'],
			['assistant', 'memory_stm_write'],
			['tool', '{"key":"city","notes":1}'],
			['assistant', 'get_weather'],
			['tool', 'Blue sky.'],
			['assistant', 'clock'],
			['tool', 'Noon.'],
		],
		"with the agent's own call, which the client never got",
	)
	const ids = last.flatMap(({ tool_calls }) => tool_calls?.map(({ id }) => id) ?? [])
	t.equal(new Set(ids).size, ids.length, 'unique, although the model used an id twice')
})

void t.test('of calls of both kinds in one answer, the agent makes its own and the client gets the rest', async (t) => {
	model.on(
		'both of them',
		{
			text: 'At once.',
			tools: [
				toolOf('Oslo'),
				{ name: 'memory_stm_write', arguments: { key: 'a', value: 1 }, id: 'm1' },
				{ name: 'clock', arguments: {}, id: 'c1' },
			],
			usage,
		},
		'Done.',
	)
	const messages: Messages = userMessages('both of them')
	const stream = openai.chat.completions.stream({ model: 'ada', messages, tools: [weather, clock] })
	const { choices, usage: reported } = await stream.finalChatCompletion()
	t.match(choices[0], {
		finish_reason: 'tool_calls',
		message: {
			content: 'At once.',
			tool_calls: [{ function: { name: 'get_weather' } }, { function: { name: 'clock' } }],
		},
	})
	t.equal(reported, undefined, 'it was not requested')
	const [message] = choices.map((choice) => choice.message)
	messages.push(message as OpenAI.ChatCompletionMessage, ...results(message, 'Snow.', 'Night.').toReversed())
	t.equal((await openai.chat.completions.create({ model: 'ada', messages })).choices[0]?.message.content, 'Done.')
	t.strictSame(
		withoutAdditions(model.requests('both of them')[1]?.messages).map(
			({ role, content }) => `${role} ${String(content)}`,
		),
		[
			'user both of them',
			'assistant At once.',
			'tool {"key":"a","notes":1}',
			'assistant null',
			'tool Snow.',
			'tool Night.',
		],
	)
})

void t.test('unknown calls and their results are passed on as the client sent them', async (t) => {
	model.on('a strange one', 'I see.')
	const calls = [
		{ id: 'x', type: 'function' as const, function: { name: 'get_weather', arguments: '{"city":"Bern"}' } },
	]
	const messages: Messages = [
		{ role: 'user', content: 'a strange one' },
		{ role: 'assistant', content: null, tool_calls: calls },
		{ role: 'tool', tool_call_id: 'x', content: 'Fog.' },
	]
	const { choices } = await openai.chat.completions.create({ model: 'ada', messages, tools: [weather] })
	t.equal(choices[0]?.message.content, 'I see.')
	t.match(withoutAdditions(model.requests('a strange one')[0]?.messages), [
		{ role: 'user' },
		{ role: 'assistant', tool_calls: calls },
		{ role: 'tool', tool_call_id: 'x', content: 'Fog.' },
	])
})

void t.test('a named conversation has the prompt once, with its call, result and answer', async (t) => {
	model.on('kept call', { tools: [toolOf('Kiel')] }, 'Windy.')
	model.on('and now', 'The same.')
	const ask = (messages: Messages) =>
		openai.chat.completions.create({ model: 'ada', messages, tools: [weather], user: 'keeper' })
	const messages: Messages = userMessages('kept call')
	const message = (await ask(messages)).choices[0]?.message
	messages.push(message as OpenAI.ChatCompletionMessage, ...results(message, 'Wind.'))
	t.equal((await ask(messages)).choices[0]?.message.content, 'Windy.')
	await ask(userMessages('and now'))
	const contents = (list: { content: unknown }[] = []) => list.map(({ content }) => content)
	t.strictSame(contents(withoutAdditions(model.requests('and now')[0]?.messages)), [
		'kept call',
		null,
		'Wind.',
		'Windy.',
		'and now',
	])
	const { body } = await gateway.request('GET', '/v1/agents/ada/history?conversation=openai:local:keeper')
	t.strictSame(contents(body), ['kept call', 'Windy.', 'and now', 'The same.'])
})

void t.test('parallel_tool_calls: false gives one call at a time; tool_choice: none offers no tool', async (t) => {
	model.on('twice', { tools: [toolOf('Ulm'), { ...toolOf('Bonn'), id: 'w2' }] }, 'Both are dry.')
	const messages: Messages = userMessages('twice')
	const body = { model: 'ada', messages, tools: [weather], parallel_tool_calls: false }
	const message = (await openai.chat.completions.create(body)).choices[0]?.message
	t.equal(message?.tool_calls?.length, 1)
	messages.push(message as OpenAI.ChatCompletionMessage, ...results(message, 'Dry.'))
	t.equal((await openai.chat.completions.create(body)).choices[0]?.message.content, 'Both are dry.')

	model.on('no tools', 'Without.')
	await openai.chat.completions.create({
		...body,
		messages: userMessages('no tools'),
		tool_choice: 'none',
	})
	t.notOk(model.requests('no tools')[0]?.tools?.some((tool) => tool.function.name === 'get_weather'))
})

void t.test('tools that a provider executes and client metadata are ignored, and named in a header', async (t) => {
	model.on('with extras', 'Done.')
	const hosted = [{ type: 'web_search' }, { type: 'custom', custom: { name: 'apply_patch' } }]
	const body = {
		model: 'ada',
		messages: userMessages('with extras'),
		tools: [hosted[0], weather, { ...hosted[1], type: 'cus tom\r\n' }] as OpenAI.ChatCompletionTool[],
		client_metadata: { session: 'x' },
	}
	const answered = await openai.chat.completions.create(body).withResponse()
	t.equal(answered.response.headers.get('x-svc-ignored'), 'tools[0].web_search, tools[2].cus_tom__, client_metadata')
	const offered = model.requests('with extras')[0]?.tools?.map((tool) => tool.function.name) ?? []
	t.ok(offered.includes('get_weather'))
	t.notOk(offered.includes('apply_patch'))

	const response = await openai.responses
		.create({
			model: 'ada',
			input: 'with extras',
			stream: true,
			tools: [{ type: 'web_search' }, { type: 'function', name: 'clock', parameters: null, strict: null }],
		})
		.withResponse()
	t.equal(response.response.headers.get('x-svc-ignored'), 'tools[0].web_search')
	for await (const event of response.data)
		if (event.type === 'response.completed') t.match(event.response.tools, [{ type: 'function', name: 'clock' }])

	const include = ['web_search_call.action.sources', 'file_search_call.results', 'reasoning.encrypted_content'] as const
	const included = await openai.responses.create({ model: 'ada', input: 'with extras', include: [...include] })
	t.equal(included.status, 'completed', 'without calls of these tools there is nothing to include')

	const plain = await openai.responses.create({ model: 'ada', input: 'with extras', store: false }).withResponse()
	t.equal(plain.response.headers.get('x-svc-ignored'), null)
})

void t.test('inconsistent tools and messages are refused', async (t) => {
	const messages: Messages = userMessages('never said')
	const create = (fields: object) => refusal(openai.chat.completions.create({ model: 'ada', messages, ...fields }))
	const named = (name: string) => ({ type: 'function', function: { name } })
	t.match(await create({ tools: [named('memory_recall')] }), {
		status: 400,
		param: 'tools[0]',
		message: /already has a tool/,
	})
	t.match(await create({ tools: [named('a'), named('a')] }), { status: 400, param: 'tools[1]', message: /two tools/ })
	t.match(await create({ tools: [named('a b')] }), { status: 400, param: 'tools[0].function.name' })
	t.match(await create({ tools: [{ custom: { name: 'x' } }] }), { status: 400, param: 'tools[0].type' })
	t.match(await create({ tools: [{ type: 'function', name: 'x' }] }), { status: 400, param: 'tools[0].function' })
	const call = { id: 'x', type: 'function', function: { name: 'a', arguments: '{}' } }
	const open = [...messages, { role: 'assistant', tool_calls: [call] }]
	t.match(await create({ messages: [...open, ...messages] }), {
		status: 400,
		param: 'messages',
		message: /has no result/,
	})
	t.match(await create({ messages: open }), { status: 400, message: /has no result/ })
	const twice = [...messages, { role: 'assistant', tool_calls: [call, call] }]
	t.match(await create({ messages: twice }), { status: 400, message: /two calls have the id "x"/ })
	t.equal(model.requests('never said').length, 0)
})

void t.test('a named conversation accepts results alone, and its later turns have the calls and results', async () => {
	const ask = (messages: Messages) =>
		openai.chat.completions.create(
			{ model: 'svc/ada', messages, tools: [weather] },
			{ headers: { 'x-svc-conversation': 'travel' } },
		)
	model.on('rain in Oslo', { text: 'I look.', tools: [toolOf('Oslo')], usage }, { text: 'It rains.', usage })
	model.on('and what else', { text: 'Nothing.', usage })
	const first = await ask(userMessages('Is there rain in Oslo?'))
	const call = first.choices[0]?.message
	t.equal(call?.tool_calls?.length, 1)
	const second = await ask(results(call, 'wet: 100 %'))
	t.equal(second.choices[0]?.message.content, 'It rains.')
	await ask(userMessages('and what else?'))
	t.match(withoutAdditions(model.requests('and what else')[0]?.messages), [
		{ role: 'user', content: 'Is there rain in Oslo?' },
		{ role: 'assistant', content: 'I look.', tool_calls: [{ function: { name: 'get_weather' } }] },
		{ role: 'tool', content: 'wet: 100 %' },
		{ role: 'assistant', content: 'It rains.' },
		{ role: 'user', content: 'and what else?' },
	])
	// Another conversation does not accept these results.
	const other = openai.chat.completions.create(
		{ model: 'svc/ada', messages: results(call, 'dry'), tools: [weather] },
		{ headers: { 'x-svc-conversation': 'work' } },
	)
	t.match(await refusal(other), { status: 400 })
})
