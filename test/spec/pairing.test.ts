/** Channel bindings and pairing codes, over HTTP. */
import t from 'tap'
import { addAgent, addToken } from '../support/add.ts'
import { makeHome, startGateway } from '../support/gateway.ts'
import type { Answer, Reply, RequestOptions, TestGateway } from '../support/gateway.ts'
import { addChannel, codeFor, loopFiles, openLoop } from '../support/loop.ts'
import type { LoopConnection } from '../support/loop.ts'
import { assertError } from '../support/error-response.ts'
import { openStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'

const config = 'plugins: {loop: true}\nchannels: {max_bindings: 60}\n'
const loop = openLoop()
const gateway = await startGateway({ config, files: loopFiles() })
t.teardown(() => gateway.stop())

const invalid = { status: 400, code: 'pairing_invalid', message: /wrong, used or expired/ }
let channels = 0

function call(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<Reply<Answer>> {
	return gateway.request(method, path, { ...options, ...(body !== undefined && { body }) })
}

/** Returns the pairing call of a new caller, since wrong codes are counted per caller. */
async function newCaller(
	at: Pick<TestGateway, 'request'> = gateway,
): Promise<(body: unknown) => Promise<Reply<Answer>>> {
	const { token } = await addToken(at, ['channels:write'])
	return (body) => at.request('POST', '/v1/channels/pair', { token, body })
}

async function newChannel(
	config: Record<string, unknown> = {},
	at: Pick<TestGateway, 'request'> = gateway,
): Promise<{
	id: string
	connection: LoopConnection
	code: (chat: string) => Promise<string>
	bound: () => Promise<Answer[]>
}> {
	const token = `pairing-token-${++channels}`
	const id = await addChannel(at, token, { config })
	const connection = await loop.connected(token)
	return {
		id,
		connection,
		code: (chat) => codeFor(loop, connection, chat),
		bound: async () => (await at.request('GET', `/v1/channels/${id}/bindings`)).body.bindings,
	}
}

async function agent(name: string, at: Pick<TestGateway, 'request'> = gateway): Promise<string> {
	await addAgent(at, name)
	return name
}

void t.test('chats with an open code are listed until they are bound', async (t) => {
	const { id, code } = await newChannel()
	await agent('listed')
	const waiting = async (): Promise<Answer[]> =>
		(await call('GET', '/v1/channels/waiting')).body.chats.filter((one: Answer) => one.channel_id === id)
	t.strictSame(await waiting(), [])
	await code('first')
	await code('second')
	await code('second')
	const chats = await waiting()
	t.strictSame(new Set(chats.map(({ external_chat_id }) => external_chat_id)), new Set(['first', 'second']))
	t.match(chats[0], { asked_by: /./, expires_at: /^\d{4}-/ })
	t.strictSame(Object.keys(chats[0]).toSorted(), ['asked_by', 'channel_id', 'expires_at', 'external_chat_id'])
	const body = { agent_id: 'listed', channel_id: id, external_chat_id: 'second', paired_by: chats[0].asked_by }
	t.equal((await call('POST', '/v1/channels/pair', body)).status, 201)
	t.strictSame(
		(await waiting()).map(({ external_chat_id }) => external_chat_id),
		['first'],
	)
})

void t.test('the direct form creates a binding, which can be read and deleted', async (t) => {
	const stream = await openStream(gateway.url, { query: { event_type: 'channel.*' } })
	t.teardown(() => stream.close())
	const { id, bound } = await newChannel()
	await agent('direct')
	const wanted = { agent_id: 'direct', channel_id: id, external_chat_id: '-100123' }
	const reply = await call('POST', '/v1/channels/pair', wanted)
	t.equal(reply.status, 201)
	const { binding_id, ...rest } = reply.body
	t.strictSame(rest, wanted)
	t.ok(typeof binding_id === 'string' && binding_id !== '')
	const event = await stream.waitFor('channel.paired')
	t.match(event, { agent_id: 'direct', payload: { channel_id: id, binding_id, external_chat_id: '-100123' } })

	await call('POST', '/v1/channels/pair', { ...wanted, external_chat_id: 'a second one' })
	const [first, second, ...others] = await bound()
	t.match(first, { ...reply.body, created_at: /^\d{4}-.*Z$/ })
	t.equal(second.external_chat_id, 'a second one')
	t.strictSame(others, [])
	t.strictSame((await call('GET', `/v1/channels/${id}`)).body.bindings, [first, second])

	const other = await newChannel()
	assertError(t, await call('DELETE', `/v1/channels/${other.id}/bindings/${binding_id}`), {
		status: 404,
		code: 'not_found',
	})
	const deleted = await call('DELETE', `/v1/channels/${id}/bindings/${binding_id}`)
	t.equal(deleted.status, 200)
	t.strictSame(deleted.body, { binding_id, status: 'deleted' })
	await stream.waitFor('channel.unpaired')
	assertError(t, await call('DELETE', `/v1/channels/${id}/bindings/${binding_id}`), { status: 404, code: 'not_found' })
	t.strictSame(await bound(), [second])
	t.equal((await call('POST', '/v1/channels/pair', wanted)).status, 201, 'the chat can be bound again')
})

void t.test('a request with neither form, both forms or an invalid field is refused', async (t) => {
	const { id, bound } = await newChannel()
	await agent('rows')
	const valid = { agent_id: 'rows', channel_id: id, external_chat_id: '7' }
	for (const [body, path, message] of [
		[{}, '', /either pairing_code, or/],
		[{ agent_id: 'rows' }, 'channel_id', /missing/],
		[{ agent_id: 'rows', channel_id: id }, 'external_chat_id', /missing/],
		[{ channel_id: id, external_chat_id: '7' }, 'agent_id', /missing/],
		[{ ...valid, pairing_code: '7K3N9QXM' }, 'channel_id', /either/],
		[{ pairing_code: '7K3N9QXM', channel_id: id }, 'channel_id', /either/],
		[{ pairing_code: '7K3N9QXM', external_chat_id: '7' }, 'external_chat_id', /either/],
		[{ pairing_code: '' }, 'pairing_code', /empty/],
		[{ pairing_code: 12345678 }, 'pairing_code', /string/],
		[{ pairing_code: '7'.repeat(65) }, 'pairing_code', /64/],
		[{ pairing_code: '7K3N9QXM', agent_id: '' }, 'agent_id', /empty/],
		[{ pairing_code: '7K3N9QXM', agent_id: '../x' }, 'agent_id', /name of an agent/],
		[{ ...valid, agent_id: 7 }, 'agent_id', /string/],
		[{ ...valid, channel_id: '' }, 'channel_id', /empty/],
		[{ ...valid, channel_id: 'x'.repeat(65) }, 'channel_id', /64/],
		[{ ...valid, external_chat_id: '' }, 'external_chat_id', /empty/],
		[{ ...valid, external_chat_id: 7 }, 'external_chat_id', /string/],
		[{ ...valid, external_chat_id: 'x'.repeat(129) }, 'external_chat_id', /128/],
		[{ ...valid, external_chat_id: 'a\0b' }, 'external_chat_id', /printable/],
		[{ ...valid, external_chat_id: 'ü' }, 'external_chat_id', /printable/],
		[{ ...valid, extra: 1 }, 'extra', /not allowed/],
	] as const)
		assertError(
			t,
			await call('POST', '/v1/channels/pair', body),
			{ status: 400, code: 'invalid_request', message, path },
			JSON.stringify(body).slice(0, 80),
		)
	for (const [body, message] of [
		[{ ...valid, agent_id: 'nobody' }, /no agent "nobody"/],
		[{ ...valid, channel_id: 'nothing' }, /no channel "nothing"/],
		[{ ...valid, channel_id: '\0' }, /no channel/],
		[{ pairing_code: '7K3N9QXM', agent_id: 'nobody' }, /no agent "nobody"/],
	] as const)
		assertError(t, await call('POST', '/v1/channels/pair', body), { status: 404, code: 'not_found', message })
	t.strictSame(await bound(), [])
})

void t.test('a chat is bound to one agent, even if several agents request it concurrently', async (t) => {
	const { id, bound } = await newChannel()
	const names = await Promise.all(Array.from({ length: 10 }, (_, n) => agent(`rival-${n}`)))
	const replies = await Promise.all(
		names.map((agent_id) => call('POST', '/v1/channels/pair', { agent_id, channel_id: id, external_chat_id: 'one' })),
	)
	const [won, ...more] = replies.filter(({ status }) => status === 201)
	t.strictSame(more, [])
	for (const reply of replies.filter((one) => one !== won))
		assertError(t, reply, {
			status: 409,
			code: 'already_exists',
			message: new RegExp(`bound to agent "${won?.body.agent_id}"`),
		})
	t.strictSame(
		(await bound()).map((one) => one.agent_id),
		[won?.body.agent_id],
	)

	const other = await newChannel()
	const elsewhere = { agent_id: 'rival-0', channel_id: other.id, external_chat_id: 'one' }
	t.equal(
		(await call('POST', '/v1/channels/pair', elsewhere)).status,
		201,
		'the same id in another channel is another chat',
	)
})

void t.test('a channel has at most channels.max_bindings, and a deletion frees a place', async (t) => {
	const { id, bound } = await newChannel()
	await agent('full')
	const pair = (chat: number) =>
		call('POST', '/v1/channels/pair', { agent_id: 'full', channel_id: id, external_chat_id: String(chat) })
	const replies = await Promise.all(Array.from({ length: 64 }, (_, n) => pair(n)))
	t.equal(replies.filter(({ status }) => status === 201).length, 60)
	for (const reply of replies.filter(({ status }) => status !== 201))
		assertError(t, reply, { status: 409, code: 'conflict', message: /max_bindings/ })
	const all = await bound()
	t.equal(all.length, 60)
	await call('DELETE', `/v1/channels/${id}/bindings/${all[0].binding_id}`)
	t.equal((await pair(100)).status, 201)
	assertError(t, await pair(101), { status: 409, code: 'conflict' })

	// The agent has more bindings than one commit deletes.
	await call('DELETE', '/v1/agents/full')
	t.strictSame(await bound(), [], 'at once, even before all records are removed')
	await agent('full')
	t.strictSame(await bound(), [], 'a new agent with the same name has none')
	await eventually(
		() => pair(200),
		({ status }) => status === 201,
	)
	const refill = await Promise.all(
		Array.from({ length: 59 }, (_, n) =>
			eventually(
				() => pair(n),
				({ status }) => status === 201,
			),
		),
	)
	t.equal(refill.length, 59)
	t.equal((await bound()).length, 60)
	assertError(t, await pair(201), { status: 409, code: 'conflict' })
})

void t.test('a code binds the chat that it was issued for, once', async (t) => {
	const { id, code, bound, connection } = await newChannel()
	await agent('coded')
	const pair = await newCaller()
	const given = await code('chat-1')
	t.match(given, /^[0-9A-HJKMNP-TV-Z]{8}$/)
	const typed = ` ${given.slice(0, 4).toLowerCase()}-${given.slice(4)} `.replaceAll('0', 'o').replaceAll('1', 'l')
	const reply = await pair({ pairing_code: typed, agent_id: 'coded' })
	t.equal(reply.status, 201)
	const { binding_id, ...rest } = reply.body
	t.strictSame(rest, { agent_id: 'coded', channel_id: id, external_chat_id: 'chat-1' })
	t.strictSame(
		(await bound()).map((one) => one.binding_id),
		[binding_id],
	)
	assertError(t, await pair({ pairing_code: given, agent_id: 'coded' }), invalid, 'used')
	await eventually(
		() => loop.sent.filter((one) => one.chat.id === 'chat-1' && /connected to the agent.*coded/.test(one.text)),
		(found) => found.length === 1,
	)

	await call('DELETE', `/v1/channels/${id}/bindings/${binding_id}`)
	assertError(t, await pair({ pairing_code: given, agent_id: 'coded' }), invalid, 'used, and the chat unbound')
	const open = await code('chat-2')
	t.ok(connection.link.channel_id === id)
	await call('DELETE', `/v1/channels/${id}`)
	assertError(t, await pair({ pairing_code: open, agent_id: 'coded' }), invalid, 'of a deleted channel')
})

void t.test('exactly one of several callers with the same code succeeds', async (t) => {
	const { code, bound } = await newChannel()
	await agent('race')
	const callers = await Promise.all(Array.from({ length: 6 }, () => newCaller()))
	const pairing_code = await code('chat')
	const replies = await Promise.all(callers.map((pair) => pair({ pairing_code, agent_id: 'race' })))
	t.equal(replies.filter(({ status }) => status === 201).length, 1)
	for (const reply of replies.filter(({ status }) => status !== 201)) assertError(t, reply, invalid)
	t.equal((await bound()).length, 1)

	// A valid code that is sent again, such as after a lost response, does not count as a guess.
	const again = await newCaller()
	const next = await code('next')
	const all = await Promise.all(Array.from({ length: 8 }, () => again({ pairing_code: next, agent_id: 'race' })))
	t.equal(all.filter(({ status }) => status === 201).length, 1)
	t.equal(all.filter(({ status }) => status === 400).length, 7)
	t.equal((await again({ pairing_code: await code('last'), agent_id: 'race' })).status, 201)
})

void t.test('a chat has at most three open codes, and none once it is bound', async (t) => {
	const { id, code, bound } = await newChannel()
	await agent('three')
	const pair = async (pairing_code: string) => (await newCaller())({ pairing_code, agent_id: 'three' })
	const given: string[] = []
	for (let n = 0; n < 4; n++) given.push(await code('chat'))
	const [first = '', second = '', third = '', fourth = ''] = given
	t.equal(new Set(given).size, 4)
	assertError(t, await pair(first), invalid, 'the oldest')
	t.equal((await pair(second)).status, 201)
	assertError(t, await pair(fourth), invalid, 'the chat is bound')
	const [binding] = await bound()
	await call('DELETE', `/v1/channels/${id}/bindings/${binding.binding_id}`)
	assertError(t, await pair(third), invalid, 'issued before the binding')

	// The direct form invalidates the codes of the chat, too.
	const late = await code('direct')
	await call('POST', '/v1/channels/pair', { agent_id: 'three', channel_id: id, external_chat_id: 'direct' })
	assertError(t, await pair(late), invalid)
})

void t.test('agent_id defaults to that of the channel or the only agent, and is otherwise required', async (t) => {
	const own = await startGateway({ config, files: loopFiles() })
	t.teardown(() => own.stop())
	const plain = await newChannel({}, own)
	const preset = await newChannel({ agent_id: 'preset' }, own)
	const pair = await newCaller(own)
	const needsAgent = (reply: Reply<Answer>, message: RegExp) =>
		assertError(t, reply, { status: 400, code: 'invalid_request', path: 'agent_id', message })

	const code = await plain.code('1')
	needsAgent(await pair({ pairing_code: code }), /no agent yet/)
	await agent('only', own)
	t.match(await pair({ pairing_code: code }), { status: 201, body: { agent_id: 'only' } }, 'the code is still valid')
	const presetCode = await preset.code('1')
	needsAgent(await pair({ pairing_code: presetCode }), /config\.agent_id.*"preset".*no such agent/)
	await agent('preset', own)
	t.match(await pair({ pairing_code: presetCode }), { status: 201, body: { agent_id: 'preset' } })
	const third = await plain.code('2')
	needsAgent(await pair({ pairing_code: third }), /several agents.*give agent_id/)
	t.match(await pair({ pairing_code: third, agent_id: 'preset' }), { status: 201, body: { agent_id: 'preset' } })
	const chosen = await preset.code('2')
	t.match(await pair({ pairing_code: chosen, agent_id: 'only' }), { status: 201, body: { agent_id: 'only' } })
})

void t.test('after five wrong codes a caller gets 429, even with the right code; others do not', async (t) => {
	const { code } = await newChannel()
	await agent('guarded')
	const pairing_code = await code('chat')
	const guess = {
		pairing_code: (pairing_code.startsWith('0') ? '1' : '0') + pairing_code.slice(1),
		agent_id: 'guarded',
	}
	const [guesser, other] = [await newCaller(), await newCaller()]
	const replies = await Promise.all(Array.from({ length: 9 }, () => guesser(guess)))
	t.equal(replies.filter(({ status }) => status === 400).length, 5)
	const locked = replies.filter(({ status }) => status !== 400)
	for (const reply of [...locked, await guesser({ pairing_code, agent_id: 'guarded' })]) {
		assertError(t, reply, { status: 429, code: 'rate_limited', message: /wait \d+ s/ })
		const seconds = Number(reply.headers.get('retry-after'))
		t.ok(seconds >= 1 && seconds <= 60, `Retry-After: ${seconds}`)
	}
	const violations = (await call('GET', '/v1/audit?event_type=security.violation')).body.events
	t.equal(violations.filter((one: Answer) => one.payload.reason === 'pairing_codes').length, 1, 'reported once')
	t.equal((await other({ pairing_code, agent_id: 'guarded' })).status, 201)
})

void t.test('channels, bindings and open codes survive a restart', async (t) => {
	const home = makeHome({ config, files: loopFiles() })
	const first = await startGateway({ home })
	const { id, code, bound } = await newChannel({ room: 'a' }, first)
	await agent('ada', first)
	const body = { agent_id: 'ada', channel_id: id, external_chat_id: 'kept' }
	await first.request('POST', '/v1/channels/pair', { body })
	const before = await bound()
	const pairing_code = await code('later')
	const listed = (await first.request('GET', '/v1/channels')).body
	await first.stop()

	const second = await startGateway({ home })
	t.teardown(() => second.stop())
	t.strictSame((await second.request('GET', '/v1/channels')).body, listed)
	const read = (await second.request('GET', `/v1/channels/${id}`)).body
	t.strictSame(read.config, { room: 'a' })
	t.strictSame(read.bindings, before)
	const pair = await newCaller(second)
	t.match(await pair({ pairing_code }), { status: 201, body: { external_chat_id: 'later' } })
	await second.request('DELETE', '/v1/agents/ada')
	t.strictSame((await second.request('GET', `/v1/channels/${id}/bindings`)).body, { bindings: [] })
})

// The last test, since it blocks pairing on this gateway.
void t.test('a hundred wrong codes in a minute block pairing for all callers', async (t) => {
	const { code } = await newChannel()
	await agent('shut-out')
	const pairing_code = await code('chat')
	const callers = await Promise.all(Array.from({ length: 21 }, () => newCaller()))
	const guesses = callers
		.slice(0, 20)
		.flatMap((pair) => Array.from({ length: 5 }, () => pair({ pairing_code: 'nonsense' })))
	for (const reply of await Promise.all(guesses))
		if (![400, 429].includes(reply.status)) t.fail(`a guess answered ${reply.status}`)
	assertError(t, (await callers[20]?.({ pairing_code })) as Reply<Answer>, { status: 429, code: 'rate_limited' })
})
