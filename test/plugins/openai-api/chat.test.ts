/** Chat completions, by OpenAI's client. */
import t from 'tap'
import { addToken } from '../../support/add.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Reply } from '../../support/model-server.ts'
import { chatCompletion, startScriptedModels } from '../../support/scripted-model.ts'
import { clientOf, refusal, startSurface, userMessages } from './client.ts'
import { withoutAdditions } from '../../support/model-messages.ts'

const surface = await startSurface(t, '{user_is_conversation: true}')
const { gateway, model } = surface
const openai = surface.client()
await surface.agent('ada', { persona: 'You are Ada.', config: { max_tokens: 300 } })
await surface.agent('off', { config: { provider: 'offline' } })

void t.test('agents are models, with and without the prefix svc/', async (t) => {
	const { data } = await openai.models.list()
	t.strictSame(
		data.map(({ id, object, owned_by }) => ({ id, object, owned_by })),
		['svc/ada', 'svc/off'].map((id) => ({ id, object: 'model', owned_by: 'svc' })),
	)
	t.strictSame(await openai.models.retrieve('svc/ada'), data[0])
	t.strictSame(await openai.models.retrieve('ada'), data[0])
	const { body } = await gateway.request('GET', '/v1/models/svc/ada')
	t.equal(body.id, 'svc/ada', 'a slash does not need encoding')
	t.match(await refusal(openai.models.retrieve('svc/nobody')), { status: 404, code: 'model_not_found', param: 'model' })
})

void t.test('the answer is that of a run with the messages and parameters of the request', async (t) => {
	model.on('capital', { text: 'Paris.', usage: { prompt_tokens: 50, completion_tokens: 5 } })
	const { data, response } = await openai.chat.completions
		.create({
			model: 'svc/ada',
			messages: [
				{ role: 'system', content: 'Be brief.' },
				{ role: 'user', content: 'Hello', name: 'Ann' },
				{ role: 'assistant', content: [{ type: 'text', text: 'Good day.' }] },
				{ role: 'developer', content: [{ type: 'text', text: 'Speak English.' }] },
				{ role: 'user', content: 'One question.' },
				{ role: 'user', content: [{ type: 'text', text: 'The capital of France?' }] },
			],
			temperature: 0.25,
			top_p: 0.5,
			seed: 7,
			stop: ['END'],
			presence_penalty: 0.125,
			max_completion_tokens: 40,
			n: 1,
			response_format: { type: 'text' },
			metadata: { a: 'b' },
			logit_bias: null,
		})
		.withResponse()
	t.match(data, {
		id: /^chatcmpl-[0-9a-f]{32}$/,
		object: 'chat.completion',
		created: Number,
		model: 'svc/ada',
		choices: [
			{
				index: 0,
				message: { role: 'assistant', content: 'Paris.', refusal: null },
				finish_reason: 'stop',
				logprobs: null,
			},
		],
		usage: { prompt_tokens: 50, completion_tokens: 5, total_tokens: 55 },
	})
	const run = await surface.run(response.headers.get('x-svc-run-id') ?? '')
	t.match(run, {
		status: 'completed',
		trigger: 'openai',
		prompt: 'One question.\n\nThe capital of France?',
		answer: 'Paris.',
	})
	const [request] = model.requests('capital')
	t.strictSame(withoutAdditions(request?.messages), [
		{ role: 'system', content: 'You are Ada.\n\nBe brief.\n\nSpeak English.' },
		{ role: 'user', content: 'Ann: Hello' },
		{ role: 'assistant', content: 'Good day.' },
		{ role: 'user', content: 'One question.\n\nThe capital of France?' },
	])
	t.match(request, { temperature: 0.25, top_p: 0.5, seed: 7, stop: ['END'], presence_penalty: 0.125, max_tokens: 40 })
	t.notOk(request && 'frequency_penalty' in request)
})

void t.test("the operator's limits apply, and the parameters of a request apply to it alone", async (t) => {
	model.on('long story', { text: 'Once upon', finishReason: 'length' })
	const one = await openai.chat.completions.create({
		model: 'ada',
		messages: userMessages('A long story'),
		max_tokens: 9_000,
		temperature: 1.5,
	})
	t.equal(one.choices[0]?.finish_reason, 'length')
	await openai.chat.completions.create({ model: 'ada', messages: userMessages('A long story') })
	const [first, second] = model.requests('long story')
	t.match(first, { max_tokens: 300, temperature: 1.5 })
	t.equal(second?.max_tokens, 300)
	t.notOk(second && 'temperature' in second)
	t.equal(withoutAdditions(second?.messages).length, 2, 'without the messages of the earlier request')
})

void t.test('a stream has the role, pieces, the finish reason, the usage if requested, and [DONE]', async (t) => {
	model.on('stream it', {
		text: 'One two three four',
		chunkSize: 4,
		pauseMs: 40,
		usage: { prompt_tokens: 9, completion_tokens: 4 },
	})
	const messages = userMessages('stream it')
	const reply = await gateway.request<string>('POST', '/v1/chat/completions', {
		body: { model: 'svc/ada', messages, stream: true, stream_options: { include_usage: true } },
	})
	t.equal(reply.status, 200)
	t.match(reply.headers.get('content-type'), 'text/event-stream')
	t.match((await surface.run(reply.headers.get('x-svc-run-id') ?? '')).status, 'completed')
	const frames = reply.body.split('\n\n').filter((frame) => frame.startsWith('data: '))
	t.equal(frames.at(-1), 'data: [DONE]')
	const chunks = frames.slice(0, -1).map((frame) => JSON.parse(frame.slice(6)))
	t.strictSame(chunks[0].choices[0].delta, { role: 'assistant', content: '', refusal: null })
	const pieces = chunks.slice(1, -2).map((chunk) => chunk.choices[0].delta.content)
	t.equal(pieces.join(''), 'One two three four')
	t.ok(pieces.length > 1)
	t.match(chunks.at(-2), { choices: [{ delta: {}, finish_reason: 'stop' }], usage: null })
	t.strictSame(chunks.at(-1).choices, [])
	t.strictSame(chunks.at(-1).usage, { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 })
	t.equal(new Set(chunks.map(({ id }) => id)).size, 1)
	for (const chunk of chunks) t.equal(chunk.object, 'chat.completion.chunk')

	const helper = openai.chat.completions.stream({ model: 'svc/ada', messages })
	let streamed = ''
	helper.on('content.delta', ({ delta }) => void (streamed += delta))
	t.match(await helper.finalChatCompletion(), {
		choices: [{ message: { content: 'One two three four' }, finish_reason: 'stop' }],
	})
	t.equal(streamed, 'One two three four')
})

void t.test("text beside the agent's own tool calls is part of the answer, streamed or not", async (t) => {
	const script: Reply[] = [
		{ text: 'Let me see.', tools: [{ name: 'memory_stm_read', arguments: {} }] },
		'Nothing there.',
	]
	model.on('look up A', ...script)
	model.on('look up B', ...script)
	const ask = { model: 'ada', messages: userMessages('look up A') }
	const complete = await openai.chat.completions.create(ask)
	t.equal(complete.choices[0]?.message.content, 'Let me see.\n\nNothing there.')
	ask.messages = userMessages('look up B')
	let text = ''
	for await (const { choices } of await openai.chat.completions.create({ ...ask, stream: true }))
		text += choices[0]?.delta.content ?? ''
	t.equal(text, 'Let me see.\n\nNothing there.')
})

void t.test('`user` or the header names a conversation that the gateway keeps', async (t) => {
	for (const n of [1, 2, 3, 4]) model.on(`step ${n}`, `did ${n}`)
	const say = async (content: string, fields: object, headers: Record<string, string> = {}): Promise<void> => {
		const messages = [
			{ role: 'user' as const, content: 'of another time' },
			{ role: 'assistant' as const, content: 'which does not count here' },
			{ role: 'user' as const, content },
		]
		await openai.chat.completions.create({ model: 'svc/ada', messages, ...fields }, { headers })
	}
	await say('step 1', { user: 'ann@example.com' })
	await say('step 2', { user: 'ann@example.com' })
	await say('step 3', { user: 'Übermut 3' })
	await say('step 4', { user: 'somebody' }, { 'x-svc-conversation': 'ann@example.com' })
	const messagesOf = (n: number) =>
		withoutAdditions(model.requests(`step ${n}`)[0]?.messages)
			.slice(1)
			.map(({ content }) => content)
	t.strictSame(messagesOf(1), ['step 1'])
	t.strictSame(messagesOf(2), ['step 1', 'did 1', 'step 2'])
	t.strictSame(messagesOf(3), ['step 3'])
	t.strictSame(messagesOf(4), ['step 1', 'did 1', 'step 2', 'did 2', 'step 4'])
	const history = await gateway.request('GET', '/v1/agents/ada/history?conversation=openai:local:ann@example.com')
	t.strictSame(
		history.body.map(({ content }: { content: string }) => content),
		['step 1', 'did 1', 'step 2', 'did 2', 'step 4', 'did 4'],
	)
	const session = await gateway.request('GET', '/v1/agents/ada/history')
	t.strictSame(session.body, [], "the API's own session is separate")
})

void t.test('a question is returned as the answer; the next message of the conversation answers it', async (t) => {
	const prompt = '/tool ask {"question":"Which one?","options":["red","blue"]}'
	const ask = (content: string, user?: string) =>
		openai.chat.completions
			.create({ model: 'off', messages: userMessages(content), ...(user !== undefined && { user }) })
			.withResponse()
	const runOf = ({ response }: { response: { headers: Headers } }) =>
		surface.run(response.headers.get('x-svc-run-id') ?? '')

	const kept = await ask(prompt, 'bob')
	t.match(kept.data.choices[0], { message: { content: 'Which one?\n- red\n- blue' }, finish_reason: 'stop' })
	t.equal((await runOf(kept)).status, 'paused')
	const answered = await ask('blue', 'bob')
	t.equal(answered.data.choices[0]?.message.content, 'ask answered: {"answer":"blue"}')
	t.match(await runOf(answered), { run_id: (await runOf(kept)).run_id, status: 'completed' })

	const once = await ask(prompt)
	t.equal(once.data.choices[0]?.message.content, 'Which one?\n- red\n- blue')
	t.equal((await runOf(once)).status, 'stopped')
	t.strictSame((await gateway.request('GET', '/v1/agents/off/questions')).body, [])
})

void t.test('an approval is requested in the answer; the next message decides, and the call runs once', async (t) => {
	await surface.agent('careful', { config: { provider: 'offline', tools: { ask: ['memory.store'] } } })
	const say = async (content: string, user?: string): Promise<string> => {
		const body = {
			model: 'careful',
			messages: userMessages(content),
			...(user !== undefined && { user }),
		}
		return (await openai.chat.completions.create(body)).choices[0]?.message.content ?? ''
	}
	const stored = async (): Promise<string[]> =>
		(await gateway.request('GET', '/v1/agents/careful/memory')).body.memories.map(
			({ content }: { content: string }) => content,
		)
	const prompt = '/tool memory.store {"content": "written by the model"}'
	t.match(await say(prompt, 'fay'), /memory\.store.*needs approval[^]*written by the model/)
	t.match(await refusal(say('perhaps', 'fay')), { status: 400, message: /approve/ })
	t.strictSame(await stored(), [])
	t.match(await say('edit {"content": "written by a person"}', 'fay'), /a person changed the arguments/)
	t.strictSame(await stored(), ['written by a person'])

	t.match(await say(prompt, 'fay'), /needs approval/)
	t.match(await say('refuse not today', 'fay'), /not today/)
	t.match(await say(prompt), /needs approval/, 'without a named conversation nobody can answer')
	t.strictSame(await stored(), ['written by a person'])
	t.strictSame((await gateway.request('GET', '/v1/agents/careful/questions')).body, [])
})

void t.test('the question of a sub-agent is returned as the answer, and the next message answers it', async (t) => {
	const spawn = (prompt: string): string => `/tool subagent.spawn ${JSON.stringify({ prompt })}`
	const prompt = spawn(spawn('/tool ask {"question":"Which one?","options":["red","blue"]}'))
	const text = 'A sub-agent asks:\n\nWhich one?\n- red\n- blue'
	const create = (content: string, fields: object) => {
		const body = { model: 'off', messages: userMessages(content), ...fields }
		return openai.chat.completions.create(body).withResponse()
	}
	const runOf = ({ response }: { response: { headers: Headers } }) =>
		surface.run(response.headers.get('x-svc-run-id') ?? '')

	const stream = await openai.chat.completions.create({
		model: 'off',
		user: 'eve',
		stream: true,
		messages: userMessages(prompt),
	})
	let streamed = ''
	for await (const { choices } of stream) streamed += choices[0]?.delta.content ?? ''
	t.equal(streamed, text)
	const [open] = (await gateway.request('GET', '/v1/agents/off/questions')).body
	const answered = await create('blue', { user: 'eve' })
	t.match(answered.data.choices[0]?.message.content, /^subagent\.spawn answered.*blue/)
	const parent = await runOf(answered)
	t.match(parent, { status: 'completed', trigger: 'openai' })
	t.not(open.run_id, parent.run_id)
	const again = await gateway.request('POST', `/v1/agents/off/ask-responses/${open.question_id}`, {
		body: { answer: 'red' },
	})
	t.equal(again.status, 409)

	const once = await create(prompt, {})
	t.equal(once.data.choices[0]?.message.content, text)
	t.equal((await runOf(once)).status, 'stopped')
	t.strictSame((await gateway.request('GET', '/v1/agents/off/questions')).body, [])
})

void t.test("errors have the format of OpenAI's API, and name the field", async (t) => {
	const messages = userMessages('x')
	const create = (fields: object) => refusal(openai.chat.completions.create({ model: 'ada', messages, ...fields }))
	t.match(await create({ model: 'svc/nobody' }), {
		status: 404,
		type: 'invalid_request_error',
		param: 'model',
		code: 'model_not_found',
		message: /there is no model "svc\/nobody"/,
	})
	const invalid: [object, string, RegExp][] = [
		[{ n: 2 }, 'n', /n must be 1/],
		[{ logprobs: true }, 'logprobs', /no probabilities/],
		[{ modalities: ['text', 'audio'] }, 'modalities', /must be \["text"\]/],
		[{ audio: { voice: 'x', format: 'wav' } }, 'audio', /not supported/],
		[{ functions: [{ name: 'f' }] }, 'functions', /use tools/],
		[{ tool_choice: 'required' }, 'tool_choice', /tools contains no function/],
		[{ web_search_options: {} }, 'web_search_options', /skill/],
		[{ temperature: 3 }, 'temperature', /temperature/],
		[{ temperature: '1' }, 'temperature', /must be a number/],
		[{ colour: 'red' }, 'colour', /colour is not allowed/],
		[{ messages: [] }, 'messages', /at least 1/],
		[{ messages: [{ role: 'robot', content: 'x' }] }, 'messages[0].role', /role/],
		[{ messages: [{ role: 'system', content: 'x' }] }, 'messages', /must contain a message of the user/],
		[{ messages: userMessages('x'.repeat(102_401)) }, 'messages', /at most 100 KiB/],
		[
			{ messages: [{ role: 'user', content: [{ type: 'video_url', video_url: { url: 'https://example.com' } }] }] },
			'messages[0].content[0]',
			/supported types are text, image_url/,
		],
		[{ messages: [...messages, { role: 'tool', content: 'y' }] }, 'messages[1].tool_call_id', /lacks tool_call_id/],
		[{ messages: [...messages, { role: 'tool', tool_call_id: 'z', content: 'y' }] }, 'messages', /is not a call/],
	]
	for (const [fields, param, message] of invalid) {
		t.match(
			await create(fields),
			{ status: 400, type: 'invalid_request_error', param, message },
			JSON.stringify(fields).slice(0, 80),
		)
	}
	t.equal((await surface.runs('ada')).filter(({ prompt }) => prompt === 'x').length, 0, 'none of them started a run')

	const paths: [string, string, number][] = [
		['GET', '/v1/chat/completions', 405],
		['GET', '/v1/files', 404],
		['GET', '/v1/embeddings', 405],
		['POST', '/v1/audio/speech', 404],
		['POST', '/v1/responses/resp_1/pause', 404],
	]
	for (const [method, path, status] of paths) {
		const { body, ...reply } = await gateway.request(method, path)
		t.equal(reply.status, status, path)
		// The caller is not authenticated yet, so the path is not repeated.
		t.match(body, { error: { message: /this path/, type: 'invalid_request_error', param: null, code: String } }, path)
	}
	const { body } = await gateway.request('GET', '/v1/nothing')
	t.match(body, { statusCode: 404, error: 'Not Found', code: 'not_found' }, "the gateway's own errors stay as they are")
	const large = await refusal(openai.chat.completions.create({ model: 'ada', messages, user: 'x'.repeat(34_000_000) }))
	t.match(large, { status: 413, type: 'invalid_request_error', code: 'payload_too_large' })
	const plain = await gateway.request('POST', '/v1/chat/completions', {
		body: 'x',
		headers: { 'content-type': 'text/plain' },
	})
	t.match(plain, { status: 415, body: { error: { code: 'unsupported_media_type' } } })
	const broken = await gateway.request('POST', '/v1/chat/completions', { body: '{"model":' })
	t.match(broken, { status: 400, body: { error: { message: /not valid JSON/ } } })
})

void t.test('a failed run is an error that clients do not retry', async (t) => {
	model.on('refuse me', { status: 400, message: 'the model says no' })
	const messages = userMessages('refuse me')
	const failed = await refusal(openai.chat.completions.create({ model: 'ada', messages }))
	t.match(failed, { status: 400, type: 'invalid_request_error', code: 'model_rejected', message: /the model says no/ })
	t.equal(failed.headers?.get('x-should-retry'), 'false')
	t.equal((await surface.run(failed.headers?.get('x-svc-run-id') ?? '')).status, 'failed')
	const chunks: unknown[] = []
	const streamed = (async () => {
		for await (const chunk of await openai.chat.completions.create({ model: 'ada', messages, stream: true }))
			chunks.push(chunk)
	})()
	t.match(await refusal(streamed), {
		type: 'invalid_request_error',
		code: 'model_rejected',
		message: /the model says no/,
	})
	t.equal(chunks.length, 1, 'only the role was sent')
})

void t.test("errors of the provider have OpenAI's codes", async (t) => {
	const ask = (content: string) =>
		refusal(openai.chat.completions.create({ model: 'ada', messages: userMessages(content) }))
	model.on('much too long', {
		status: 400,
		message: "This model's maximum context length is 8192 tokens, but the request has 9000.",
		code: 'context_length_exceeded',
	})
	t.match(await ask('much too long'), {
		status: 400,
		type: 'invalid_request_error',
		code: 'context_length_exceeded',
	})
	model.on('no money', { status: 429, message: 'You exceeded your quota.', code: 'insufficient_quota' })
	const unpaid = await ask('no money')
	t.match(unpaid, { status: 502, code: 'insufficient_quota', message: /exceeded your quota/ })
	t.match(await surface.run(unpaid.headers?.get('x-svc-run-id') ?? ''), {
		error: { code: 'model_rate_limited', provider_code: 'insufficient_quota' },
	})
	model.on('too busy', { status: 400, message: 'Try later.' })
	t.match(await ask('too busy'), { status: 400, code: 'model_rejected' }, 'the type of an error is not a code')
	const stream = async () => {
		const body = { model: 'ada', messages: userMessages('no money'), stream: true as const }
		for await (const chunk of await openai.chat.completions.create(body)) t.ok(chunk)
	}
	t.match(await refusal(stream()), { code: 'insufficient_quota' })
	t.match(await refusal(openai.responses.create({ model: 'ada', input: 'no money' })), { code: 'insufficient_quota' })
	model.on('filtered away', { text: '', finishReason: 'content_filter' })
	t.match(await ask('filtered away'), { status: 400, code: 'content_filter' })
})

void t.test('a request that the provider refuses is 400; a problem that the operator must solve is 502', async (t) => {
	const statuses = { 400: 400, 422: 400, 415: 400, 401: 502, 402: 502, 403: 502, 404: 502 }
	for (const [received, returned] of Object.entries(statuses)) {
		model.on(`refused with ${received}`, { status: Number(received), message: 'The server says no.' })
		const messages = userMessages(`refused with ${received}`)
		const failed = await refusal(openai.chat.completions.create({ model: 'ada', messages }))
		t.match(failed, { status: returned, type: returned === 400 ? 'invalid_request_error' : 'server_error' }, received)
		t.match(await surface.run(failed.headers?.get('x-svc-run-id') ?? ''), {
			error: { code: 'model_rejected', provider_status: Number(received) },
		})
	}
})

void t.test('listing models requires agents:read, running an agent requires runs:write', async (t) => {
	const reader = surface.client((await addToken(gateway, ['agents:read'])).token)
	const writer = surface.client((await addToken(gateway, ['runs:write'])).token)
	const ask = { model: 'off', messages: userMessages('hello') }
	t.equal((await reader.models.list()).data.length, 3)
	t.match((await writer.chat.completions.create(ask)).choices[0]?.message.content, /hello/)
	t.match(await refusal(reader.chat.completions.create(ask)), {
		status: 403,
		type: 'permission_error',
		code: 'forbidden',
		message: /runs:write/,
	})
	t.match(await refusal(writer.models.list()), { status: 403, message: /agents:read/ })
	t.match(await refusal(surface.client('svc_wrong').chat.completions.create(ask)), {
		status: 401,
		type: 'authentication_error',
		code: 'invalid_api_key',
	})
})

void t.test('an answer that a stop sequence ends at once is empty, and is not requested again', async (t) => {
	const models = await startScriptedModels()
	t.teardown(() => models.stop())
	const { url, requests } = models.add(() => chatCompletion({ content: '' }))
	const gateway = await startGateway({
		config: `plugins: {openai-api: true}\nproviders:\n  model: {kind: openai, base_url: '${url}', model: m}\n`,
	})
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const { completions } = clientOf(gateway.url).chat
	const request = { model: 'svc/ada', messages: userMessages('The word?') }
	for (const stop of ['\n', ['END']]) {
		const { choices } = await completions.create({ ...request, stop })
		t.match(choices, [{ message: { role: 'assistant', content: '' }, finish_reason: 'stop' }])
	}
	const { choices } = await completions.stream({ ...request, stop: '\n' }).finalChatCompletion()
	t.match(choices, [{ message: { content: '' }, finish_reason: 'stop' }])
	t.equal(requests.length, 3)
	t.match(await refusal(completions.create({ ...request, stop: [] })), { code: 'model_empty' })
	t.equal(requests.length, 6)
})
