/** The Channel resource and its rows in the spec's table "Channels", over HTTP. */
import t from 'tap'
import { addToken } from '../support/add.ts'
import { startGateway } from '../support/gateway.ts'
import type { Answer, Reply, RequestOptions } from '../support/gateway.ts'
import { addChannel, loopFiles, openLoop, secretOf, waitForConnection } from '../support/loop.ts'
import { isProperResponse, assertError } from '../support/error-response.ts'
import { eventually } from '../support/wait.ts'

const loop = openLoop()
const gateway = await startGateway({
	config:
		'plugins: {loop: true}\nchannels: {max_channels: 12, allowed_api_roots: [bots.example.com, "10.0.0.7:8081"]}\n',
	files: loopFiles(),
})
t.teardown(() => gateway.stop())

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

function call(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<Reply<Answer>> {
	return gateway.request(method, path, { ...options, ...(body !== undefined && { body }) })
}

async function secret(name: string, value = `value-of-${name}`, policy_label?: string): Promise<string> {
	const body = { name, value, ...(policy_label !== undefined && { policy_label }) }
	return (await call('POST', '/v1/vault/secrets', body)).body.id
}

async function remove(id: string): Promise<void> {
	t.equal((await call('DELETE', `/v1/channels/${id}`)).status, 200)
}

void t.test('both forms of the request create a channel', async (t) => {
	const id = await secret('FORM_TOKEN')
	for (const [about, body] of [
		['by name', { bot_token_ref: 'FORM_TOKEN' }],
		['by id', { bot_token_ref: id, config: {} }],
		['nested', { config: { bot_token_secret_ref: 'FORM_TOKEN', mine: { any: ['thing'] } } }],
		['both the same', { bot_token_ref: id, config: { bot_token_secret_ref: id } }],
	] as const) {
		const reply = await call('POST', '/v1/channels', { type: 'loop', ...body })
		t.equal(reply.status, 201, about)
		const { id: channel_id, created_at, ...rest } = reply.body
		t.strictSame(rest, { type: 'loop', status: 'active' }, about)
		t.match(created_at, ISO)
		const { body: read } = await call('GET', `/v1/channels/${channel_id}`)
		t.match(read, { ...reply.body, bot_token_ref: about === 'nested' ? 'FORM_TOKEN' : String, bindings: [] }, about)
		t.strictSame(read.config, about === 'nested' ? { mine: { any: ['thing'] } } : {}, `${about}: config`)
		await remove(channel_id)
	}
})

void t.test('an alias of a type is accepted, and responses contain the type', async (t) => {
	await secret('ALIAS_TOKEN')
	const { body } = await call('POST', '/v1/channels', { type: 'loop_alias', bot_token_ref: 'ALIAS_TOKEN' })
	t.equal(body.type, 'loop')
	await remove(body.id)
})

void t.test('channels are listed in the order of their creation, until they are deleted', async (t) => {
	const ids: string[] = []
	for (const token of ['list-token-1', 'list-token-2', 'list-token-3']) ids.push(await addChannel(gateway, token))
	const listed = async (): Promise<Answer[]> => (await call('GET', '/v1/channels')).body.channels
	const shown = await listed()
	t.strictSame(
		shown.map((one) => one.id),
		ids,
	)
	for (const one of shown) t.strictSame(Object.keys(one).toSorted(), ['created_at', 'id', 'status', 'type'])

	const [first = '', second = '', third = ''] = ids
	const deleted = await call('DELETE', `/v1/channels/${second}`)
	t.equal(deleted.status, 200)
	t.strictSame(deleted.body, { id: second, status: 'deleted' })
	t.strictSame(
		(await listed()).map((one) => one.id),
		[first, third],
	)
	for (const [method, path] of [
		['DELETE', ''],
		['GET', ''],
		['PATCH', ''],
		['GET', '/bindings'],
		['DELETE', '/bindings/x'],
	] as const)
		assertError(
			t,
			await call(method, `/v1/channels/${second}${path}`, method === 'PATCH' ? {} : undefined),
			{ status: 404, code: 'not_found', message: /no channel/ },
			`${method} ${path}`,
		)
	for (const id of [first, third]) await remove(id)
})

void t.test('exactly one of many concurrent deletions answers 200', async (t) => {
	const id = await addChannel(gateway, 'deleted-often')
	const replies = await Promise.all(Array.from({ length: 8 }, () => call('DELETE', `/v1/channels/${id}`)))
	t.equal(replies.filter(({ status }) => status === 200).length, 1)
	for (const reply of replies.filter(({ status }) => status !== 200))
		assertError(t, reply, { status: 404, code: 'not_found' })
	const events = (await call('GET', '/v1/audit?event_type=channel.deleted')).body.events
	t.equal(events.filter((one: Answer) => one.payload.channel_id === id).length, 1)
})

void t.test('an invalid request is refused, naming the field', async (t) => {
	await secret('GOOD_TOKEN')
	const good = { type: 'loop', bot_token_ref: 'GOOD_TOKEN' }
	const before = (await call('GET', '/v1/channels')).body
	for (const [body, path, message] of [
		[{}, 'type', /required/],
		[{ type: 'loop' }, 'bot_token_ref', /required/],
		[{ ...good, type: 'smoke' }, 'type', /running plugin provides: .*loop/],
		[{ ...good, type: 'LOOP' }, 'type', /provides/],
		[{ ...good, type: '__proto__' }, 'type', /provides/],
		[{ ...good, type: '' }, 'type', /empty/],
		[{ ...good, type: 7 }, 'type', /string/],
		[{ ...good, type: 'x'.repeat(33) }, 'type', /32/],
		[{ ...good, bot_token_ref: 'NOBODY' }, 'bot_token_ref', /no secret "NOBODY"/],
		[{ ...good, bot_token_ref: '' }, 'bot_token_ref', /empty/],
		[{ ...good, bot_token_ref: '../../x\0' }, 'bot_token_ref', /no secret/],
		[{ ...good, bot_token_ref: 7 }, 'bot_token_ref', /string/],
		[{ ...good, bot_token_ref: 'x'.repeat(129) }, 'bot_token_ref', /128/],
		[{ ...good, config: { bot_token_secret_ref: 'OTHER' } }, 'config.bot_token_secret_ref', /two secrets/],
		[{ ...good, config: { bot_token_secret_ref: null } }, 'config.bot_token_secret_ref', /string/],
		[{ ...good, config: 'x' }, 'config', /object/],
		[{ ...good, config: [] }, 'config', /object/],
		[{ ...good, extra: 1 }, 'extra', /not allowed/],
		[{ ...good, status: 'active' }, 'status', /not allowed/],
		[{ ...good, config: { agent_id: '-x' } }, 'config.agent_id', /name of an agent/],
		[{ ...good, config: { agent_id: null } }, 'config.agent_id', /string/],
		[{ ...good, config: { answer: 'sometimes' } }, 'config.answer', /mentions/],
		[{ ...good, config: { allowed_senders: 'me' } }, 'config.allowed_senders', /array/],
		[{ ...good, config: { allowed_senders: ['ü'] } }, 'config.allowed_senders.0', /printable ASCII/],
		[{ ...good, config: { allowed_senders: ['a', 'a'] } }, 'config.allowed_senders.1', /duplicate/],
		[{ ...good, config: { api_root: 'bots.example.com' } }, 'config.api_root', /http:\/\//],
		[{ ...good, config: { api_root: 'file:///etc/passwd' } }, 'config.api_root', /http:\/\//],
		[{ ...good, config: { api_root: 'http:127.0.0.1' } }, 'config.api_root', /http:\/\//],
		[{ ...good, config: { api_root: 'http://127.0.0.1:1 ' } }, 'config.api_root', /must not contain spaces/],
		[{ ...good, config: { api_root: '\thttp://127.0.0.1' } }, 'config.api_root', /must not contain spaces/],
		[{ ...good, config: { api_root: 'http://127.0.0.1/\0' } }, 'config.api_root', /must not contain spaces/],
		[{ ...good, config: { api_root: 'https://me:pw@bots.example.com' } }, 'config.api_root', /user or password/],
		[{ ...good, config: { api_root: 'https://bots.example.com/?x=1' } }, 'config.api_root', /query/],
		[{ ...good, config: { room: 7 } }, 'config.room', /string/],
		[{ ...good, config: { room: 'far too long' } }, 'config.room', /10/],
		[{ ...good, config: { volume: 12 } }, 'config.volume', /11/],
		[{ ...good, config: { volume: '3' } }, 'config.volume', /number/],
		[{ ...good, config: { big: 'x'.repeat(65_536) } }, 'config', /65536/],
	] as const)
		assertError(
			t,
			await call('POST', '/v1/channels', body),
			{ status: 400, code: 'invalid_request', message, path },
			JSON.stringify(body).slice(0, 80),
		)
	for (const raw of ['', 'null', '[]', '{', '"x"', '{"type":"loop","__proto__":{"bot_token_ref":"GOOD_TOKEN"}}'])
		assertError(t, await call('POST', '/v1/channels', raw), { status: 400, code: 'invalid_request' }, raw)
	for (const method of ['PUT', 'PATCH'])
		t.ok(isProperResponse(await call(method, '/v1/channels', {})), `${method} /v1/channels`)
	t.strictSame((await call('GET', '/v1/channels')).body, before)
})

void t.test('unknown ids are 404, and ids that are too long 400', async (t) => {
	for (const id of ['nothing', 'pair', '%00', '..%2f..', '__proto__', 'x'.repeat(64), '0'.repeat(36)])
		assertError(t, await call('GET', `/v1/channels/${id}`), { status: 404, code: 'not_found' }, id)
	assertError(t, await call('GET', `/v1/channels/${'x'.repeat(65)}`), { status: 400, code: 'invalid_request' })
	const id = await addChannel(gateway, 'odd-ids-token')
	for (const binding of ['nothing', '%00', '__proto__', '0'.repeat(36)])
		assertError(
			t,
			await call('DELETE', `/v1/channels/${id}/bindings/${binding}`),
			{ status: 404, code: 'not_found', message: /no binding/ },
			binding,
		)
	await remove(id)
})

void t.test('concurrent requests do not exceed channels.max_channels', async (t) => {
	for (let n = 0; n < 16; n++) await secret(`MANY_${n}`)
	const replies = await Promise.all(
		Array.from({ length: 16 }, (_, n) => call('POST', '/v1/channels', { type: 'loop', bot_token_ref: `MANY_${n}` })),
	)
	const made = replies.filter(({ status }) => status === 201)
	const { channels } = (await call('GET', '/v1/channels')).body
	t.equal(channels.length, 12)
	t.equal(made.length, 12)
	for (const reply of replies.filter(({ status }) => status !== 201))
		assertError(t, reply, { status: 409, code: 'conflict', message: /max_channels/ })
	for (const { body } of made) await remove(body.id)
})

void t.test('PATCH changes only the supplied fields, and reconnects', async (t) => {
	const id = await addChannel(gateway, 'change-token', { config: { room: 'a', note: 1 } })
	await waitForConnection(gateway, id, 'connected')
	const first = await call('PATCH', `/v1/channels/${id}`, { config: { room: 'b', answer: 'all' } })
	t.equal(first.status, 200)
	t.strictSame(first.body.config, { room: 'b', note: 1, answer: 'all' })
	const second = await loop.connected('change-token', 2)
	t.strictSame(second.link.config, { room: 'b', note: 1, answer: 'all', volume: 3 }, 'with the defaults of the adapter')
	t.ok(loop.connections('change-token')[0]?.closed)

	const third = await call('PATCH', `/v1/channels/${id}`, { config: { note: null, room: null } })
	t.strictSame(third.body.config, { answer: 'all' })
	await loop.connected('change-token', 3)
	await waitForConnection(gateway, id, 'connected')
	t.strictSame((await call('PATCH', `/v1/channels/${id}`, {})).body.connection, 'connected')
	await call('PATCH', `/v1/channels/${id}`, { config: { answer: 'all' }, bot_token_ref: secretOf('change-token') })

	await secret('CHANGED', 'changed-token')
	await call('PATCH', `/v1/channels/${id}`, { config: { bot_token_secret_ref: 'CHANGED' } })
	await loop.connected('changed-token')
	t.equal((await waitForConnection(gateway, id, 'connected')).bot_token_ref, 'CHANGED')
	t.equal(loop.attempts('change-token'), 3, 'a PATCH that changes nothing does not reconnect')

	for (const [body, path] of [
		[{ config: { room: 7 } }, 'config.room'],
		[{ config: { answer: 'x' } }, 'config.answer'],
		[{ config: { big: 'x'.repeat(65_536) } }, 'config'],
		[{ bot_token_ref: 'NOBODY' }, 'bot_token_ref'],
		[{ bot_token_ref: null }, 'bot_token_ref'],
		[{ config: { bot_token_secret_ref: null } }, 'config.bot_token_secret_ref'],
		[{ type: 'loop' }, 'type'],
	] as const)
		assertError(
			t,
			await call('PATCH', `/v1/channels/${id}`, body),
			{ status: 400, code: 'invalid_request', path },
			JSON.stringify(body).slice(0, 80),
		)
	const updated = (await call('GET', '/v1/audit?event_type=channel.updated')).body.events
	t.strictSame(updated.map((one: Answer) => one.payload.fields).toReversed(), [
		['room', 'answer'],
		['room', 'note'],
		['bot_token_ref'],
	])
	await remove(id)
})

void t.test('reading requires channels:read, and changing channels:write', async (t) => {
	const id = await addChannel(gateway, 'scopes-token')
	const [reader, writer, other] = await Promise.all([
		addToken(gateway, ['channels:read']),
		addToken(gateway, ['channels:write']),
		addToken(gateway, ['agents:write', 'vault:write']),
	])
	const rows = [
		['GET', '/v1/channels', 'channels:read', undefined],
		['GET', `/v1/channels/${id}`, 'channels:read', undefined],
		['GET', `/v1/channels/${id}/bindings`, 'channels:read', undefined],
		['POST', '/v1/channels', 'channels:write', { type: 'loop', bot_token_ref: 'x' }],
		['PATCH', `/v1/channels/${id}`, 'channels:write', {}],
		['POST', '/v1/channels/pair', 'channels:write', { pairing_code: 'x' }],
		['DELETE', `/v1/channels/${id}/bindings/x`, 'channels:write', undefined],
		['DELETE', `/v1/channels/${id}`, 'channels:write', undefined],
	] as const
	for (const [method, path, scope, body] of rows) {
		const [right, wrong] = scope === 'channels:read' ? [reader, writer] : [writer, reader]
		for (const { token } of [wrong, other])
			assertError(
				t,
				await call(method, path, body, { token }),
				{ status: 403, code: 'forbidden', message: new RegExp(scope) },
				`${method} ${path}`,
			)
		assertError(
			t,
			await call(method, path, body, { headers: { 'x-forwarded-for': '192.0.2.7' } }),
			{ status: 401, code: 'unauthorized' },
			`${method} ${path}`,
		)
		const { status } = await call(method, path, body, { token: right.token })
		t.notOk([401, 403, 500].includes(status), `${method} ${path} answers ${status}`)
	}
})

void t.test('without the scope *, a caller can use only channel secrets and allowed servers', async (t) => {
	const { token } = await addToken(gateway, ['channels:write'])
	const id = await secret('FOR_CHANNELS', 'for-channels', 'channel')
	await secret('FOR_OTHERS', 'for-others', 'billing')
	await secret('UNLABELLED')
	const make = (bot_token_ref: string, config: object = {}, by: RequestOptions = { token }) =>
		call('POST', '/v1/channels', { type: 'loop', bot_token_ref, config }, by)

	for (const ref of ['FOR_OTHERS', 'UNLABELLED'])
		assertError(t, await make(ref), { status: 403, code: 'forbidden', message: /policy_label.*scope "\*"/ }, ref)
	assertError(t, await make('NOBODY'), { status: 400, code: 'invalid_request', path: 'bot_token_ref' })
	for (const api_root of [
		'https://evil.example.com',
		'https://bots.example.com.evil.example',
		'https://sub.bots.example.com',
		'http://10.0.0.7:8082',
		'http://10.0.0.7',
		'http://169.254.169.254',
		'http://127.0.0.1:8081',
	])
		assertError(
			t,
			await make('FOR_CHANNELS', { api_root }),
			{ status: 403, code: 'forbidden', message: /channels\.allowed_api_roots/ },
			api_root,
		)
	for (const [key, value] of [
		['room', 'b'],
		['homeserver', 'https://evil.example.com'],
		['unknown', null],
		['', 7],
		['__proto__x', {}],
		['bot_token_ref', 'FOR_OTHERS'],
	] as const)
		assertError(
			t,
			await make('FOR_CHANNELS', { answer: 'all', [key]: value }),
			{ status: 403, code: 'forbidden', message: new RegExp(`^config\\.${key} requires the scope "\\*"`) },
			key,
		)
	const violations = (await call('GET', '/v1/audit?event_type=security.violation')).body.events
	t.match(violations[0].payload, { reason: 'channel_refused', secret: 'FOR_CHANNELS' })
	t.strictSame((await call('GET', '/v1/channels')).body.channels, [])

	for (const api_root of ['https://bots.example.com/x/', 'http://BOTS.example.com.:81', 'http://10.0.0.7:8081/']) {
		const made = await make(id, { api_root })
		t.equal(made.status, 201, api_root)
		await remove(made.body.id)
	}
	const open = await make(id, { volume: 7, answer: 'all' })
	t.equal(open.status, 201, 'a setting that the adapter declares as unguarded')
	for (const [change, status] of [
		[{ volume: 8 }, 200],
		[{ room: 'b' }, 403],
		[{ volume: null, homeserver: 'x' }, 403],
	] as const)
		t.equal((await call('PATCH', `/v1/channels/${open.body.id}`, { config: change }, { token })).status, status)
	await remove(open.body.id)
	const everything = await make('UNLABELLED', { api_root: 'http://127.0.0.1:1', room: 'a' }, {})
	t.equal(everything.status, 201)
	const { id: trusted } = everything.body

	// A caller without the scope * cannot redirect a channel of one that has it.
	for (const body of [
		{ config: { api_root: null } },
		{ config: { api_root: 'https://bots.example.com' } },
		{ config: { room: 'b' } },
		{ config: { room: null } },
		{ config: { volume: 5, room: 'b' } },
		{ config: { homeserver: 'https://evil.example.com' } },
		{ bot_token_ref: 'FOR_OTHERS' },
	])
		assertError(
			t,
			await call('PATCH', `/v1/channels/${trusted}`, body, { token }),
			{ status: 403, code: 'forbidden' },
			JSON.stringify(body),
		)
	const { config } = (await call('GET', `/v1/channels/${trusted}`)).body
	t.strictSame(config, { api_root: 'http://127.0.0.1:1', room: 'a' })
	const harmless = { config: { answer: 'all', agent_id: 'ada', allowed_senders: ['7'], volume: 5 } }
	t.equal((await call('PATCH', `/v1/channels/${trusted}`, harmless, { token })).status, 200)
	const { link } = await loop.connected('value-of-UNLABELLED')
	await eventually(
		() => loop.connections('value-of-UNLABELLED').at(-1)?.link.config,
		(now) => (now as { volume?: number }).volume === 5,
	)
	t.match(link.config, { api_root: 'http://127.0.0.1:1', room: 'a' }, 'the first connection keeps its settings')
	await remove(trusted)

	// The label is checked before each connection.
	const { body: made } = await make('FOR_CHANNELS')
	await loop.connected('for-channels')
	await call('DELETE', `/v1/vault/secrets/${id}`)
	await waitForConnection(gateway, made.id, 'error')
	await secret('FOR_CHANNELS', 'not-for-channels', 'billing')
	const channel = await eventually(
		async () => (await call('GET', `/v1/channels/${made.id}`)).body,
		({ last_error }) => /policy_label/.test(last_error),
	)
	t.equal(channel.connection, 'error')
	t.equal(loop.attempts('not-for-channels'), 0)
	await remove(made.id)
})

void t.test('no response and no event contains a token', async (t) => {
	const token = 'canary-5f2b77e0c1'
	loop.script(token, 'fail', 'fail')
	const id = await addChannel(gateway, token)
	const channel = await waitForConnection(gateway, id, 'connected')
	await remove(id)
	const { events } = (await call('GET', '/v1/audit?limit=500')).body
	t.ok(events.some((one: Answer) => one.event_type === 'channel.error' && one.payload.channel_id === id))
	t.notOk(JSON.stringify([channel, events]).includes(token))
})
