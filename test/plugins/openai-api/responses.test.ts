/** Responses, by OpenAI's client. */
import type { OpenAI } from 'openai'
import t from 'tap'
import { refusal, startSurface, userMessages } from './client.ts'
import { withoutAdditions } from '../../support/model-messages.ts'

const surface = await startSurface(t)
const { gateway, model, held } = surface
const openai = surface.client()
await surface.agent('ada', { persona: 'You are Ada.' })
await surface.agent('bob', { config: { provider: 'held' } })
await surface.agent('off', { config: { provider: 'offline' } })
const weather: OpenAI.Responses.FunctionTool = {
	type: 'function',
	name: 'get_weather',
	parameters: { type: 'object', properties: { city: { type: 'string' } } },
	strict: null,
}
const contents = (prompt: string) => withoutAdditions(model.requests(prompt)[0]?.messages).map(({ content }) => content)

void t.test('a response is that of a run with the input and parameters of the request', async (t) => {
	model.on('first of all', { text: 'Fine.', usage: { prompt_tokens: 30, completion_tokens: 3 } })
	const { data, response } = await openai.responses
		.create({
			model: 'svc/ada',
			instructions: 'Be brief.',
			input: [
				{ role: 'developer', content: 'Speak English.' },
				{ role: 'user', content: 'Hello' },
				{ type: 'message', role: 'assistant', content: 'Hello.' },
				{ role: 'user', content: [{ type: 'input_text', text: 'first of all' }] },
			],
			temperature: 0.5,
			max_output_tokens: 70,
			metadata: { a: 'b' },
		})
		.withResponse()
	t.match(data, {
		id: /^resp_[0-9a-f]{64}$/,
		object: 'response',
		status: 'completed',
		model: 'svc/ada',
		instructions: 'Be brief.',
		metadata: { a: 'b' },
		temperature: 0.5,
		max_output_tokens: 70,
		error: null,
		output_text: 'Fine.',
		output: [
			{ type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Fine.' }] },
		],
		usage: { input_tokens: 30, output_tokens: 3, total_tokens: 33 },
	})
	t.match(await surface.run(response.headers.get('x-svc-run-id') ?? ''), { status: 'completed', trigger: 'openai' })
	t.strictSame(contents('first of all'), [
		'You are Ada.\n\nBe brief.\n\nSpeak English.',
		'Hello',
		'Hello.',
		'first of all',
	])
	t.match(model.requests('first of all')[0], { temperature: 0.5, max_tokens: 70 })
})

void t.test('a response can continue any stored one until that is deleted', async (t) => {
	for (const n of [1, 2, 3, 4]) model.on(`part ${n}`, `said ${n}`)
	const say = (n: number, previous_response_id?: string, fields: object = {}) =>
		openai.responses.create({
			model: 'ada',
			input: `part ${n}`,
			...(previous_response_id !== undefined && { previous_response_id }),
			...fields,
		})
	const one = await say(1, undefined, { instructions: 'Rhyme.' })
	const two = await say(2, one.id)
	t.equal(two.previous_response_id, one.id)
	const three = await say(3, one.id, { store: false })
	const four = await say(4, two.id)
	const persona = 'You are Ada.'
	t.strictSame(contents('part 2'), [persona, 'part 1', 'said 1', 'part 2'], 'instructions apply to one response')
	t.strictSame(contents('part 3'), [persona, 'part 1', 'said 1', 'part 3'])
	t.strictSame(contents('part 4'), [persona, 'part 1', 'said 1', 'part 2', 'said 2', 'part 4'])

	t.strictSame(await openai.responses.retrieve(two.id), two)
	const include = ['reasoning.encrypted_content', 'web_search_call.results'] as const
	t.strictSame(await openai.responses.retrieve(two.id, { include: [...include] }), two)
	const listed = await openai.responses.inputItems.list(two.id, { include: [...include] })
	t.match(listed.data, [{ role: 'user', content: [{ text: 'part 2' }] }])
	t.match(await refusal(openai.responses.retrieve(two.id, { include: ['message.output_text.logprobs'] })), {
		status: 400,
		param: 'include[]',
		message: /agents do not return/,
	})
	const gone = { status: 404, code: 'previous_response_not_found', param: 'previous_response_id' }
	t.match(await refusal(say(1, three.id)), gone, 'it was not stored')
	const { body } = await gateway.request('DELETE', `/v1/responses/${four.id}`)
	t.strictSame(body, { id: four.id, object: 'response', deleted: true })
	t.match(await refusal(openai.responses.retrieve(four.id)), { status: 404, code: 'not_found' })
	t.match(await refusal(say(1, four.id)), gone)
	t.match(await refusal(openai.responses.create({ model: 'off', input: 'x', previous_response_id: two.id })), gone)
	for (const id of ['resp_x', `resp_${'0'.repeat(64)}`])
		t.match(await refusal(openai.responses.retrieve(id)), { status: 404 })
})

void t.test('a stream has all events in order, numbered', async (t) => {
	model.on('in pieces', { text: 'Here we go now', chunkSize: 4, pauseMs: 40 })
	const events: OpenAI.Responses.ResponseStreamEvent[] = []
	for await (const event of await openai.responses.create({ model: 'ada', input: 'in pieces', stream: true }))
		events.push(event)
	const types = events.map(({ type }) => type)
	const isDelta = (type: string): boolean => type === 'response.output_text.delta'
	t.strictSame(
		types.filter((type, at) => !isDelta(type) || !isDelta(types[at - 1] ?? '')),
		[
			'response.created',
			'response.in_progress',
			'response.output_item.added',
			'response.content_part.added',
			'response.output_text.delta',
			'response.output_text.done',
			'response.content_part.done',
			'response.output_item.done',
			'response.completed',
		],
	)
	t.ok(types.filter(isDelta).length > 1)
	t.strictSame(
		events.map(({ sequence_number }) => sequence_number),
		events.map((_, at) => at),
	)
	const deltas = events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : ''))
	t.equal(deltas.join(''), 'Here we go now')
	const last = events.at(-1)
	const id = last?.type === 'response.completed' ? last.response.id : ''
	t.equal((await openai.responses.retrieve(id)).output_text, 'Here we go now')

	const final = await openai.responses.stream({ model: 'ada', input: 'in pieces' }).finalResponse()
	t.equal(final.output_text, 'Here we go now')
})

void t.test("a call of the client's function is an item, and its output continues the response", async (t) => {
	const script = [
		{ tools: [{ name: 'memory_stm_write', arguments: { key: 'k', value: 1 }, id: 'm' }] },
		{ text: 'Wait.', tools: [{ name: 'get_weather', arguments: { city: 'Bern' }, id: 'w' }] },
		'Fog in Bern.',
	]
	model.on('fog of mine', ...script)
	model.on('fog sent back', ...script)
	const tools = [weather]
	const first = await openai.responses.create({ model: 'ada', input: 'fog of mine', tools })
	t.match(first.output, [
		{ type: 'message', content: [{ text: 'Wait.' }] },
		{ type: 'function_call', name: 'get_weather', arguments: '{"city":"Bern"}', status: 'completed' },
	])
	const callOf = ({ output }: OpenAI.Responses.Response) => output.find((item) => item.type === 'function_call')
	const outputFor = (response: OpenAI.Responses.Response) => ({
		type: 'function_call_output' as const,
		call_id: callOf(response)?.call_id ?? '',
		output: 'Fog.',
	})
	const next = { model: 'ada', tools, previous_response_id: first.id }
	t.match(await refusal(openai.responses.create({ ...next, input: 'and then?' })), {
		status: 400,
		message: /has no result/,
	})
	const second = await openai.responses.create({ ...next, input: [outputFor(first)] })
	t.equal(second.output_text, 'Fog in Bern.')
	const rolesIn = (prompt: string) => withoutAdditions(model.requests(prompt)[2]?.messages).map(({ role }) => role)
	const roles = ['system', 'user', 'assistant', 'tool', 'assistant', 'tool']
	t.strictSame(rolesIn('fog of mine'), roles, "with the agent's own call")

	// The same without stored responses: the client sends all items.
	const input: OpenAI.Responses.ResponseInputItem[] = [{ role: 'user', content: 'fog sent back' }]
	const events = openai.responses.stream({ model: 'ada', tools, input, store: false })
	const types: string[] = []
	for await (const { type } of events) types.push(type)
	t.strictSame(types.slice(-5), [
		'response.output_item.added',
		'response.function_call_arguments.delta',
		'response.function_call_arguments.done',
		'response.output_item.done',
		'response.completed',
	])
	const third = await events.finalResponse()
	input.push(...(third.output as OpenAI.Responses.ResponseInputItem[]), outputFor(third))
	t.equal((await openai.responses.create({ model: 'ada', tools, input, store: false })).output_text, 'Fog in Bern.')
	t.strictSame(rolesIn('fog sent back'), roles)
})

void t.test('items of stored responses can be referenced by their ids', async (t) => {
	model.on('for reference', { text: 'One moment.', tools: [{ name: 'get_weather', arguments: {}, id: 'w' }] })
	const { output } = await openai.responses.create({ model: 'ada', input: 'for reference', tools: [weather] })
	const ids = output.map(({ id }) => id ?? '')
	const call = output.find((item) => item.type === 'function_call')
	const input: OpenAI.Responses.ResponseInputItem[] = [
		{ role: 'user', content: 'for reference' },
		...ids.map((id) => ({ type: 'item_reference' as const, id })),
		{ type: 'function_call_output', call_id: call?.call_id ?? '', output: 'Rain.' },
		{ role: 'user', content: 'by their ids' },
	]
	model.on('by their ids', 'I see.')
	t.equal((await openai.responses.create({ model: 'ada', input, store: false })).output_text, 'I see.')
	t.match(withoutAdditions(model.requests('by their ids')[0]?.messages).slice(1), [
		{ role: 'user', content: 'for reference' },
		{ role: 'assistant', content: 'One moment.', tool_calls: [{ function: { name: 'get_weather' } }] },
		{ role: 'tool', content: 'Rain.' },
		{ role: 'user', content: 'by their ids' },
	])
	t.match(await refusal(openai.responses.create({ model: 'off', input })), { status: 400, param: 'input[1].id' })
})

void t.test('a question waits for the next response; if the response is not stored, the run is stopped', async (t) => {
	const input = '/tool ask {"question":"Which?"}'
	const asked = await openai.responses.create({ model: 'off', input }).withResponse()
	const run_id = asked.response.headers.get('x-svc-run-id') ?? ''
	t.match(asked.data, { status: 'completed', output_text: 'Which?' })
	t.equal((await surface.run(run_id)).status, 'paused')
	const answer = await openai.responses
		.create({ model: 'off', input: 'this', previous_response_id: asked.data.id })
		.withResponse()
	t.equal(answer.response.headers.get('x-svc-run-id'), run_id)
	t.equal(answer.data.output_text, 'ask answered: {"answer":"this"}')
	t.not(answer.data.id, asked.data.id)
	t.equal((await openai.responses.retrieve(answer.data.id)).output_text, answer.data.output_text)

	const once = await openai.responses.create({ model: 'off', input, store: false }).withResponse()
	t.equal((await surface.run(once.response.headers.get('x-svc-run-id') ?? '')).status, 'stopped')
})

void t.test('each of several questions of a sub-agent waits for the next response', async (t) => {
	const ask = (question: string): object => ({ prompt: `/tool ask ${JSON.stringify({ question })}` })
	const input = `/tool subagent.spawn ${JSON.stringify(ask('Which?'))}`
	const asked = await openai.responses.create({ model: 'off', input }).withResponse()
	const run_id = asked.response.headers.get('x-svc-run-id') ?? ''
	t.equal(asked.data.output_text, 'A sub-agent asks:\n\nWhich?')
	const answer = await openai.responses
		.create({ model: 'off', input: 'this', previous_response_id: asked.data.id })
		.withResponse()
	t.equal(answer.response.headers.get('x-svc-run-id'), run_id)
	t.match(answer.data.output_text, /^subagent\.spawn answered.*this/)

	const first = openai.responses.create({ model: 'bob', input: 'give that to another' })
	const spawned = JSON.stringify({ prompt: 'the task of another' })
	;(await held.called('give that to another')).callTool('subagent_spawn', spawned)
	;(await held.called('the task of another')).callTool('ask', '{"question":"One?"}')
	t.match((await first).output_text, /A sub-agent asks:\n\nOne\?$/)
	const second = openai.responses.create({ model: 'bob', input: '1', previous_response_id: (await first).id })
	;(await held.called('the task of another', 2)).callTool('ask', '{"question":"Two?"}')
	t.equal((await second).output_text, 'A sub-agent asks:\n\nTwo?')
	const third = openai.responses.create({ model: 'bob', input: '2', previous_response_id: (await second).id })
	;(await held.called('the task of another', 3)).answer('well.')
	;(await held.called('give that to another', 2)).answer('all is well.')
	t.match((await third).output_text, /all is well\.$/)
})

void t.test('a response in progress is shown as such, and cannot be continued', async (t) => {
	const stream = await openai.responses.create({ model: 'bob', input: 'take time', stream: true })
	const events = stream[Symbol.asyncIterator]()
	const created = (await events.next()).value
	const id = created?.type === 'response.created' ? created.response.id : ''
	const call = await held.called('take time')
	t.match(await openai.responses.retrieve(id), { status: 'in_progress', output: [] })
	t.match(await refusal(openai.responses.create({ model: 'bob', input: 'x', previous_response_id: id })), {
		status: 409,
		code: 'conflict',
		message: /still in progress/,
	})
	call.answer('done')
	for (let next = await events.next(); next.done !== true; next = await events.next())
		t.not(next.value.type, 'response.failed')
	t.match(await openai.responses.retrieve(id), { status: 'completed', output_text: 'Well, done' })
})

void t.test('a response in progress can be cancelled: its run stops, and its request fails', async (t) => {
	const stream = await openai.responses.create({ model: 'bob', input: 'cancel me', stream: true }).withResponse()
	const run_id = stream.response.headers.get('x-svc-run-id') ?? ''
	const events = stream.data[Symbol.asyncIterator]()
	const created = (await events.next()).value
	const id = created?.type === 'response.created' ? created.response.id : ''
	const call = await held.called('cancel me')
	t.match(await openai.responses.cancel(id), { id, status: 'cancelled', error: null, output: [] })
	await call.hungUp
	t.equal((await surface.run(run_id)).status, 'stopped')
	let last: OpenAI.Responses.ResponseStreamEvent | undefined
	for (let next = await events.next(); next.done !== true; next = await events.next()) last = next.value
	t.match(last, { type: 'response.failed', response: { status: 'cancelled' } })
	t.match(await openai.responses.retrieve(id), { status: 'cancelled' })
	t.match(await openai.responses.cancel(id), { status: 'cancelled' }, 'again')

	model.on('to its end', 'Done.')
	const done = await openai.responses.create({ model: 'ada', input: 'to its end' })
	t.match(await openai.responses.cancel(done.id), { status: 'completed', output: [{ content: [{ text: 'Done.' }] }] })
	t.match(await refusal(openai.responses.cancel(`resp_${'0'.repeat(64)}`)), { status: 404, param: 'response_id' })
})

void t.test('the input items of a response can be read in pages', async (t) => {
	model.on('list this', 'Listed.')
	const { id } = await openai.responses.create({
		model: 'ada',
		instructions: 'Be brief.',
		input: [
			{ role: 'user', content: 'Fog?' },
			{ role: 'assistant', content: 'I look.' },
			{ type: 'function_call', call_id: 'c', name: 'get_weather', arguments: '{}' },
			{ type: 'function_call_output', call_id: 'c', output: 'Fog.' },
			{ role: 'user', content: 'list this' },
		],
	})
	const items: OpenAI.Responses.ResponseItem[] = []
	for await (const item of openai.responses.inputItems.list(id, { limit: 2, order: 'asc' })) items.push(item)
	t.match(items, [
		{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Fog?' }] },
		{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
		{ type: 'function_call', call_id: 'c', name: 'get_weather', arguments: '{}' },
		{ type: 'function_call_output', call_id: 'c', output: 'Fog.' },
		{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'list this' }] },
	])
	t.equal(new Set(items.map((item) => item.id)).size, items.length)
	const page = await openai.responses.inputItems.list(id)
	t.strictSame(page.data, items.toReversed(), 'the newest first')
	t.equal(page.has_more, false)
	t.match(await refusal(openai.responses.inputItems.list(id, { after: 'msg_x' })), {
		status: 404,
		param: 'after',
	})
	t.match(await refusal(openai.responses.inputItems.list(id, { limit: 101 })), { status: 400, param: 'limit' })
})

void t.test('failed and cut-off answers have their status and error', async (t) => {
	model.on('too long', { text: 'And so', finishReason: 'length' })
	t.match(await openai.responses.create({ model: 'ada', input: 'too long' }), {
		status: 'incomplete',
		incomplete_details: { reason: 'max_output_tokens' },
		output: [{ status: 'incomplete' }],
	})
	model.on('fails at once', { status: 400, message: 'the model says no' })
	t.match(await refusal(openai.responses.create({ model: 'ada', input: 'fails at once' })), {
		status: 400,
		code: 'model_rejected',
	})
	let failed: OpenAI.Responses.Response | undefined
	for await (const event of await openai.responses.create({ model: 'ada', input: 'fails at once', stream: true }))
		if (event.type === 'response.failed') failed = event.response
	// After an unknown code, the AI SDK repeats the request, which starts another run.
	t.match(failed, { status: 'failed', error: { code: 'invalid_prompt', message: /the model says no/ } })
	t.match(await openai.responses.retrieve(failed?.id ?? ''), { status: 'failed', error: { code: 'invalid_prompt' } })
	const message = 'This model has a maximum context length of 10 tokens.'
	model.on('does not fit', { status: 400, code: 'string_above_max_length', message })
	for await (const event of await openai.responses.create({ model: 'ada', input: 'does not fit', stream: true }))
		if (event.type === 'response.failed') failed = event.response
	t.match(failed, { error: { code: 'context_length_exceeded', message: /maximum context length/ } })
})

void t.test('fields that an agent cannot follow are refused by name', async (t) => {
	const invalid: [object, string][] = [
		[{ background: true }, 'background'],
		[{ conversation: 'conv_1' }, 'conversation'],
		[{ max_tool_calls: 3 }, 'max_tool_calls'],
		[{ include: ['message.output_text.logprobs'] }, 'include'],
		[{ text: { format: { type: 'yaml' } } }, 'text.format.type'],
		[{ tools: [{ type: 'function' }] }, 'tools[0].name'],
		[{ tool_choice: { type: 'function', name: 'x' } }, 'tool_choice'],
		[{ input: [{ type: 'item_reference', id: 'x' }] }, 'input[0].id'],
		[{ input: [{ type: 'item_reference', id: `msg_${'0'.repeat(32)}` }] }, 'input[0].id'],
		[{ input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'x' }] }] }, 'input[0].content'],
		[{ input: [{ role: 'robot', content: 'x' }] }, 'input[0].role'],
		[{ input: [{ role: 'user', content: [{}] }] }, 'input[0].content[0].type'],
		[{ input: [{ type: 'function_call_output', call_id: 'c', output: [{}] }] }, 'input[0].output[0].type'],
		[{ input: [{ type: 'computer_call_output' }] }, 'input[0]'],
		[{ input: [{ type: 'function_call_output', output: 'x' }] }, 'input[0].call_id'],
		[{ prompt: { id: 'x' } }, 'prompt'],
		[{ colour: 'red' }, 'colour'],
	]
	for (const [fields, param] of invalid) {
		const error = await refusal(openai.responses.create({ model: 'ada', input: 'x', ...fields }))
		t.match(error, { status: 400, type: 'invalid_request_error', param, message: /./ }, param)
	}
	t.match(await refusal(openai.responses.create({ model: 'ada', input: 'x', background: true })), {
		message: /POST \/v1\/agents\/\{name\}\/runs/,
	})
})

void t.test('deleting an agent deletes its responses', async (t) => {
	await surface.agent('eve', { config: { provider: 'offline' } })
	const { id } = await openai.responses.create({ model: 'eve', input: 'hello' })
	await gateway.request('DELETE', '/v1/agents/eve')
	await surface.agent('eve', { config: { provider: 'offline' } })
	t.match(await refusal(openai.responses.retrieve(id)), { status: 404 })
})

void t.test('two chats of one user are separate', async (t) => {
	model.on('a secret', 'I keep it.')
	model.on('another chat', 'Hello.')
	const by = { model: 'ada', user: 'ann' }
	await openai.chat.completions.create({ ...by, messages: userMessages('a secret') })
	await openai.chat.completions.create({ ...by, messages: userMessages('another chat') })
	t.strictSame(contents('another chat'), ['You are Ada.', 'another chat'])

	const question = '/tool ask {"question":"Delete everything?"}'
	const asked = await openai.responses.create({ model: 'off', user: 'ann', input: question })
	t.equal(asked.output_text, 'Delete everything?')
	const hello = await openai.responses.create({ model: 'off', user: 'ann', input: 'yes' })
	t.notMatch(hello.output_text, /ask answered/)
	t.match(
		(await openai.responses.create({ model: 'off', input: 'no', previous_response_id: asked.id })).output_text,
		/"no"/,
	)
})
