/** Requests in progress when clients disconnect, models break off, tokens are revoked, or the gateway reloads or stops. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { addToken } from '../../support/add.ts'
import { startGateway } from '../../support/gateway.ts'
import { openStream } from '../../support/sse.ts'
import { eventually } from '../../support/wait.ts'
import { configOf, refusal, startSurface, userMessages } from './client.ts'

const surface = await startSurface(t, '{max_open: 2, heartbeat_s: 1}')
const { gateway, model, held } = surface
const openai = surface.client()
await surface.agent('ada')
await surface.agent('bob', { config: { provider: 'held' } })

const ask = (model: string, content: string) => ({ model, messages: userMessages(content) })

/** A stream of an agent whose model waits for the test after its first piece. */
async function openHeld(content: string, token?: string) {
	const { data, response } = await surface
		.client(token)
		.chat.completions.create({ ...ask('bob', content), stream: true })
		.withResponse()
	const chunks = data[Symbol.asyncIterator]()
	const next = async (): Promise<string | undefined> => {
		const { value, done } = await chunks.next()
		return done === true ? undefined : (value.choices[0]?.delta.content ?? '')
	}
	const call = await held.called(content)
	await next() // the role
	while ((await next()) !== 'Well, ');
	return { next, call, abort: () => data.controller.abort(), run_id: response.headers.get('x-svc-run-id') ?? '' }
}

void t.test('while the plugin is off, the error states how to switch it on', async (t) => {
	const other = await startGateway()
	t.teardown(() => other.stop())
	const message = async (method: string, path: string): Promise<string> => {
		const { status, body } = await other.request(method, path)
		t.equal(status, 404)
		return String(body.message)
	}
	t.equal(
		await message('POST', '/v1/chat/completions'),
		'there is no POST at this path while the plugin openai-api is off; "svc config set plugins.openai-api true" switches it on',
	)
	t.match(await message('GET', '/mcp'), 'while the plugin mcp-server is off')
	t.match(await message('GET', '/v1/chats'), 'GET /v1/openapi.json lists all routes')
})

void t.test('a client whose base URL lacks /v1, or has it twice, gets an error about it', async (t) => {
	for (const base of ['', '/v1//', '/v1/v1']) {
		const client = surface.client()
		client.baseURL = `${gateway.url}${base}`
		const missing = { status: 404, code: 'not_found', message: /base URL .* must end in \/v1/ }
		t.match(await refusal(client.models.list()), missing, base)
		t.match(await refusal(client.chat.completions.create(ask('bob', 'never asked'))), missing, base)
		t.match(await refusal(client.responses.retrieve('resp_1')), missing, base)
	}
	const { body } = await gateway.request('GET', '/v1/agents/bob/models')
	t.match(body, { error: 'Not Found', message: /GET \/v1\/openapi.json/ }, 'other paths do not belong to this API')
})

void t.test('a client that disconnects stops its run, streamed or not', async (t) => {
	const stream = await openHeld('leave a stream')
	stream.abort()
	await stream.call.hungUp
	await surface.reaches(stream.run_id, 'stopped')

	const leaving = new AbortController()
	const refused = refusal(openai.chat.completions.create(ask('bob', 'leave at once'), { signal: leaving.signal }))
	const call = await held.called('leave at once')
	leaving.abort()
	await call.hungUp
	t.match((await refused).message, /aborted/)
	// The model can get the request before the run is listed.
	const [run] = await eventually(
		() => surface.runs('bob'),
		([newest]) => newest?.prompt === 'leave at once',
	)
	await surface.reaches(run?.run_id ?? '', 'stopped')
})

void t.test('a stream and its run end when the token is revoked', async (t) => {
	const { id, token } = await addToken(gateway, ['runs:write'])
	const { next, call, run_id } = await openHeld('revoke me', token)
	await gateway.request('DELETE', `/v1/auth/tokens/${id}`)
	t.match(await refusal(next()), { type: 'authentication_error', code: 'invalid_api_key', message: /no longer valid/ })
	await call.hungUp
	await surface.reaches(run_id, 'stopped')
})

void t.test('all requests of a revoked token get the same error', async (t) => {
	const { id, token } = await addToken(gateway, ['runs:write'])
	const client = surface.client(token)
	const waiting = ['revoke one', 'revoke two'].map((words) =>
		refusal(client.chat.completions.create(ask('bob', words))),
	)
	await Promise.all([held.called('revoke one'), held.called('revoke two')])
	await gateway.request('DELETE', `/v1/auth/tokens/${id}`)
	for (const error of await Promise.all(waiting))
		t.match(error, { status: 401, code: 'invalid_api_key', message: /the token is no longer valid/ })
})

void t.test('requests beyond max_open are refused', async (t) => {
	const streams = [await openHeld('fill one'), await openHeld('fill two')]
	const full = await refusal(openai.chat.completions.create(ask('ada', 'too many')))
	t.match(full, { status: 503, type: 'server_error', code: 'unavailable', message: /2 requests are in progress/ })
	t.equal(full.headers?.get('retry-after'), '5')
	for (const { call, next } of streams) {
		call.answer('done')
		while ((await next()) !== undefined);
	}
	model.on('room again', 'yes')
	t.equal((await openai.chat.completions.create(ask('ada', 'room again'))).choices[0]?.message.content, 'yes')
})

void t.test('a broken model call that is repeated with the same text continues the stream', async (t) => {
	const text = 'The answer is four, I think.'
	model.on('break off', { text, chunkSize: 6, pauseMs: 40, cutAfterChunks: 3 }, { text, chunkSize: 6 })
	let streamed = ''
	for await (const { choices } of await openai.chat.completions.create({ ...ask('ada', 'break off'), stream: true }))
		streamed += choices[0]?.delta.content ?? ''
	t.equal(streamed, text)
	t.equal(model.requests('break off').length, 2)
})

void t.test('if the repeated call has other text, the stream ends with an error and its run is stopped', async (t) => {
	const script = [{ text: 'The answer is four.', chunkSize: 6, pauseMs: 40, cutAfterChunks: 3 }, 'No idea at all.']
	model.on('change your mind', ...script)
	model.on('think again', ...script)
	const { data, response } = await openai.chat.completions
		.create({ ...ask('ada', 'change your mind'), stream: true })
		.withResponse()
	const all = (async () => {
		for await (const _ of data);
	})()
	t.match(await refusal(all), { type: 'server_error', code: 'model_interrupted', message: /different answer/ })
	// The run can complete just before it is stopped.
	t.match((await surface.run(response.headers.get('x-svc-run-id') ?? '')).status, /^(stopped|completed)$/)
	const complete = await openai.chat.completions.create(ask('ada', 'think again'))
	t.equal(complete.choices[0]?.message.content, 'No idea at all.', 'nothing was sent before the end')
})

void t.test('a silent stream gets comments', async (t) => {
	const body = JSON.stringify({ ...ask('bob', 'be silent'), stream: true })
	const headers = { 'content-type': 'application/json' }
	const response = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body })
	const call = await held.called('be silent')
	let text = ''
	for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
		text += piece
		if (call.open && text.includes('\n: still here\n')) call.answer('at last')
	}
	t.match(text, /"content":"Well, ".*\n\n(: still here\n)+data: .*"content":"at last"/s)
	t.ok(text.endsWith('data: [DONE]\n\n'))
})

void t.test('a reload does not affect an open stream', async (t) => {
	const events = await openStream(gateway.url, { query: { event_type: 'config.*' } })
	t.teardown(() => events.close())
	const { next, call } = await openHeld('go on')
	writeFileSync(
		join(gateway.home, 'config', 'gateway.yaml'),
		configOf(model, held, '{max_open: 1, user_is_conversation: false}'),
	)
	await events.waitFor(({ event_type }) => event_type === 'config.reloaded')
	call.say('we go on')
	let streamed = ''
	while (!streamed.includes('we go on')) streamed += await next()
	// A request to the new instance, which has its own count and other settings.
	model.on('after it', 'new')
	await openai.chat.completions.create({ ...ask('ada', 'after it'), user: 'nobody' })
	t.match((await surface.runs('ada'))[0]?.conversation, /^openai:once:/)
	call.answer(' to the end')
	for (let piece = await next(); piece !== undefined; piece = await next()) streamed += piece
	t.equal(streamed, 'we go on to the end')
})

void t.test('deleting an agent ends its requests', async (t) => {
	await surface.agent('eve', { config: { provider: 'held' } })
	const failed = refusal(openai.chat.completions.create(ask('eve', 'delete me')))
	await held.called('delete me')
	await gateway.request('DELETE', '/v1/agents/eve')
	// The model is called while the run is being stored: the deletion can precede the end of its start.
	t.match(await failed, { code: /^(stopped|not_found)$/ })
})

void t.test('a stopping gateway ends open streams', async (t) => {
	const { next } = await openHeld('the end')
	const stopped = gateway.stop()
	t.match(await refusal(next()), { message: /./ })
	await stopped
})
