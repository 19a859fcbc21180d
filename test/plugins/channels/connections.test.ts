/** A channel's connection: established, lost, refused and replaced, without effect on other channels. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { startGateway } from '../../support/gateway.ts'
import type { Answer, TestGateway } from '../../support/gateway.ts'
import { addChannel, loopFiles, openLoop, secretOf, waitForConnection } from '../../support/loop.ts'
import type { Act } from '../../support/loop.ts'
import { openStream } from '../../support/sse.ts'
import { eventually } from '../../support/wait.ts'

const loop = openLoop()
const settings = 'channels: {retry_max_s: 1}\n'
const gateway = await startGateway({ config: `plugins: {loop: true}\n${settings}`, files: loopFiles() })
t.teardown(() => gateway.stop())

async function read(id: string, at: Pick<TestGateway, 'request'> = gateway): Promise<Answer> {
	return (await at.request('GET', `/v1/channels/${id}`)).body
}

async function eventsOf(id: string): Promise<[type: string, error: unknown][]> {
	const { events } = (await gateway.request('GET', '/v1/audit?event_type=channel.*&limit=500')).body
	return events
		.filter((one: Answer) => one.payload.channel_id === id)
		.map((one: Answer) => [one.event_type, one.payload.error])
		.toReversed()
}

/** Waits until a channel has as many events as `wanted`, and asserts that they are these. */
async function assertEvents(t: Test, id: string, wanted: [type: string, error?: RegExp][]): Promise<void> {
	const events = await eventually(
		() => eventsOf(id),
		(found) => found.length >= wanted.length,
	)
	t.strictSame(
		events.map(([type]) => type),
		wanted.map(([type]) => type),
	)
	for (const [n, [, error]] of wanted.entries()) if (error) t.match(events[n]?.[1], error)
}

async function replaceSecret(token: string, value: string): Promise<void> {
	const { body } = await gateway.request('GET', '/v1/vault/secrets')
	const { id } = body.find((one: Answer) => one.name === secretOf(token))
	const reply = await gateway.request('PUT', `/v1/vault/secrets/${id}`, { body: { value } })
	if (reply.status !== 200) throw new Error(`not replaced: ${reply.status}`)
}

void t.test('a new channel connects, and shows the name of its bot', async (t) => {
	const id = await addChannel(gateway, 'plain-token', { config: { room: 'x', other: [1] } })
	t.match(await waitForConnection(gateway, id, 'connected'), { bot: '@bot_plai', last_error: null })
	const { link } = await loop.connected('plain-token')
	t.equal(link.channel_id, id)
	t.equal(link.token, 'plain-token')
	t.strictSame(link.config, { room: 'x', other: [1], volume: 3 })
	await assertEvents(t, id, [['channel.created'], ['channel.connected']])
})

void t.test('a failed attempt to connect is retried, and the same error is reported once', async (t) => {
	loop.script('flaky-token', 'fail', 'fail', 'fail')
	const id = await addChannel(gateway, 'flaky-token')
	t.match(await waitForConnection(gateway, id, 'connected'), { last_error: null })
	t.equal(loop.attempts('flaky-token'), 4)
	await assertEvents(t, id, [
		['channel.created'],
		['channel.error', /^no route to the loop with \[token\]$/],
		['channel.connected'],
	])
})

void t.test('a lost connection is closed and replaced; the old one has no effect any more', async (t) => {
	const id = await addChannel(gateway, 'lost-token')
	const first = await loop.connected('lost-token')
	await waitForConnection(gateway, id, 'connected')
	await first.say('chat', '/whoami')
	first.link.lost(new Error('the wire was cut'))
	await t.rejects(first.say('chat', 'too late'), { code: 'channel_unavailable' })
	const second = await loop.connected('lost-token', 2)
	t.ok(first.closed, 'closed before the next one')
	t.ok(first.link.signal.aborted)
	await waitForConnection(gateway, id, 'connected')
	first.link.status('reconnecting', 'from the grave')
	first.link.lost(new Error('from the grave'))
	await t.rejects(first.link.cursor())
	await t.rejects(first.link.chats())
	t.match(await read(id), { connection: 'connected', last_error: null })
	await second.say('chat', '/whoami', { id: 'again' })
	await assertEvents(t, id, [
		['channel.created'],
		['channel.connected'],
		['channel.disconnected', /the wire was cut/],
		['channel.connected'],
	])
})

void t.test('a connection can recover by itself, and reports it', async (t) => {
	const id = await addChannel(gateway, 'mending-token')
	const { link } = await loop.connected('mending-token')
	await waitForConnection(gateway, id, 'connected')
	link.status('reconnecting', 'a short break')
	t.match(await read(id), { connection: 'reconnecting', last_error: 'a short break' })
	link.status('sleeping' as never)
	t.match(await read(id), { connection: 'reconnecting' })
	link.status('connected')
	t.match(await read(id), { connection: 'connected', last_error: null })
	for (let n = 0; n < 500; n++) link.status(n % 2 === 0 ? 'reconnecting' : 'connected', `break ${n}`)
	await waitForConnection(gateway, id, 'connected')
	t.ok((await eventsOf(id)).length < 50, '500 changes of the state do not make 500 events')
	t.equal(loop.attempts('mending-token'), 1)
})

void t.test('a refused connection is not retried before the secret changes', async (t) => {
	loop.script('refused-token', 'refuse', 'refuse')
	const id = await addChannel(gateway, 'refused-token')
	t.match(await waitForConnection(gateway, id, 'error'), { last_error: /does not know this token; make another/ })
	await addChannel(gateway, 'unrelated-token')
	await loop.connected('unrelated-token')
	t.equal(loop.attempts('refused-token'), 1)

	await replaceSecret('refused-token', 'refused-token')
	await eventually(() => loop.attempts('refused-token') === 2)
	await waitForConnection(gateway, id, 'error')
	await replaceSecret('refused-token', 'better-token')
	t.match(await waitForConnection(gateway, id, 'connected'), { bot: '@bot_bett' })
	t.equal(loop.attempts('refused-token'), 2)
	await assertEvents(t, id, [['channel.created'], ['channel.error', /make another/], ['channel.connected']])
})

void t.test('a refused connection is retried after each PATCH of the channel, even an empty one', async () => {
	loop.script('patient-token', 'refuse', 'refuse')
	const id = await addChannel(gateway, 'patient-token')
	await waitForConnection(gateway, id, 'error')
	await gateway.request('PATCH', `/v1/channels/${id}`, { body: {} })
	await eventually(() => loop.attempts('patient-token') === 2)
	await waitForConnection(gateway, id, 'error')
	await gateway.request('PATCH', `/v1/channels/${id}`, { body: { config: { room: 'b' } } })
	await waitForConnection(gateway, id, 'connected')
})

void t.test('a connection ends when the platform refuses it later, or when its secret is deleted', async (t) => {
	const id = await addChannel(gateway, 'banned-token')
	const first = await loop.connected('banned-token')
	await waitForConnection(gateway, id, 'connected')
	first.link.lost(first.link.error('refused', 'the bot was banned'))
	t.match(await waitForConnection(gateway, id, 'error'), { last_error: 'the bot was banned' })
	t.ok(first.closed)
	await gateway.request('PATCH', `/v1/channels/${id}`, { body: {} })
	const second = await loop.connected('banned-token', 2)
	await waitForConnection(gateway, id, 'connected')

	const { body } = await gateway.request('GET', '/v1/vault/secrets')
	const secret = body.find((one: Answer) => one.name === secretOf('banned-token'))
	await gateway.request('DELETE', `/v1/vault/secrets/${secret.id}`)
	t.match(await waitForConnection(gateway, id, 'error'), { last_error: /there is no secret/ })
	await eventually(() => second.closed)
	await gateway.request('POST', '/v1/vault/secrets', {
		body: { name: secretOf('banned-token'), value: 'banned-token' },
	})
	await waitForConnection(gateway, id, 'connected')
})

void t.test('of two channels with one token the second waits, and its error names the first', async (t) => {
	const first = await addChannel(gateway, 'shared-token')
	await loop.connected('shared-token')
	const second = await addChannel(gateway, 'shared-token')
	t.match(await waitForConnection(gateway, second, 'error'), {
		last_error: new RegExp(`channel ${first} has the same bot token`),
	})
	t.equal(loop.attempts('shared-token'), 1)
	loop.closeTakes.set('shared-token', 50)
	await gateway.request('DELETE', `/v1/channels/${first}`)
	await waitForConnection(gateway, second, 'connected')
	t.ok(loop.connections('shared-token')[0]?.closed)
})

void t.test('a faulty adapter does not affect other channels', async (t) => {
	const hostile: Act[] = [
		() => undefined,
		() => 'connected',
		() => ({}),
		() => ({ send: 1, close: 2 }),
		() => {
			throw undefined
		},
		() => Promise.reject(Object.create(null)),
		() => {
			throw new Proxy(
				{},
				{
					get: () => {
						throw new Error('no')
					},
				},
			)
		},
		() => ({
			get send() {
				throw new Error('a getter')
			},
			close() {},
		}),
		(link) => {
			link.lost(new Error('lost before it was there'))
			return { send() {}, close() {} }
		},
		() => ({
			send() {},
			close() {
				throw new Error('close threw')
			},
			get name() {
				throw new Error('name threw')
			},
		}),
	]
	const ids = await Promise.all(
		hostile.map((act, n) => {
			loop.script(`hostile-token-${n}`, act)
			return addChannel(gateway, `hostile-token-${n}`)
		}),
	)
	const last = ids.pop() ?? ''
	for (const [n, id] of ids.entries()) {
		await waitForConnection(gateway, id, 'connected')
		t.equal(loop.attempts(`hostile-token-${n}`), 2, `act ${n}`)
	}
	t.match(await waitForConnection(gateway, last, 'connected'), { bot: null })
	for (const id of [last, ...ids]) t.equal((await gateway.request('DELETE', `/v1/channels/${id}`)).status, 200)
	for (const { id } of (await gateway.request('GET', '/v1/channels')).body.channels)
		t.match(await read(id), { connection: 'connected' })
})

void t.test('an attempt to connect that hangs ends when its channel is deleted', async (t) => {
	loop.script('hanging-token', 'hang')
	const id = await addChannel(gateway, 'hanging-token')
	await eventually(() => loop.attempts('hanging-token') === 1)
	t.match(await read(id), { connection: 'connecting' })
	t.equal((await gateway.request('DELETE', `/v1/channels/${id}`)).status, 200)
})

void t.test('an invalid message is skipped and reported, and does not block others', async (t) => {
	const id = await addChannel(gateway, 'messages-token')
	const { link, say } = await loop.connected('messages-token')
	await waitForConnection(gateway, id, 'connected')
	const good = { id: '1', chat: { id: 'c', kind: 'private' }, sender: { id: 's' }, text: '/whoami', addressed: true }
	for (const [message, error] of [
		[undefined, /required/],
		['text', /object/],
		[{ ...good, id: '' }, /id/],
		[{ ...good, id: 'ü' }, /id.*printable ASCII/],
		[{ ...good, id: 'x'.repeat(129) }, /id.*printable ASCII/],
		[{ ...good, id: 7 }, /id/],
		[{ ...good, chat: { ...good.chat, id: 'a\nb' } }, /chat\.id/],
		[{ ...good, chat: { ...good.chat, kind: 'crowd' } }, /chat\.kind/],
		[{ ...good, chat: { ...good.chat, thread_id: '' } }, /chat\.thread_id/],
		[{ ...good, chat: { ...good.chat, within: Array(17).fill('x') } }, /chat\.within/],
		[{ ...good, sender: {} }, /sender\.id/],
		[{ ...good, text: undefined }, /text/],
		[{ ...good, addressed: 'yes' }, /addressed/],
		[{ ...good, cursor: 7 }, /cursor/],
	] as const) {
		await link.receive(message as never)
		t.match((await read(id)).last_error, error, JSON.stringify(message)?.slice(0, 80))
	}
	await say('c', '/whoami')
	t.equal((await read(id)).connection, 'connected')
})

void t.test('channels of a plugin stay connected while others are reloaded', async (t) => {
	const own = await startGateway({
		config: `plugins: {loop: true, other: true}\n${settings}`,
		files: { ...loopFiles(), ...loopFiles('other') },
	})
	t.teardown(() => own.stop())
	const stream = await openStream(own.url)
	t.teardown(() => stream.close())
	let reloads = 0
	const reload = async (config: string): Promise<void> => {
		writeFileSync(join(own.home, 'config/gateway.yaml'), config)
		await stream.waitFor('config.reloaded', ++reloads)
	}
	const loopChannel = await addChannel(own, 'hot-loop')
	const otherChannel = await addChannel(own, 'hot-other', { type: 'other' })
	const otherConnection = await loop.connected('hot-other')
	const loopConnection = await loop.connected('hot-loop')
	await waitForConnection(own, loopChannel, 'connected')

	await reload(`plugins: {loop: false, other: true}\n${settings}`)
	t.match(await waitForConnection(own, loopChannel, 'disabled'), {
		last_error: /no running plugin.*type loop/,
		bot: null,
	})
	await eventually(() => loopConnection.closed)
	await t.rejects(loopConnection.say('chat', 'too late'))
	const { body } = await own.request('POST', '/v1/channels', {
		body: { type: 'loop', bot_token_ref: secretOf('hot-loop') },
	})
	t.match(body, { statusCode: 400, errors: [{ path: 'type', message: /provides: .*other/ }] })

	await reload(`plugins: {loop: true, other: true}\n${settings}`)
	await waitForConnection(own, loopChannel, 'connected')
	// A changed setting makes a new instance, with a new adapter.
	await reload(`plugins: {loop: {note: changed}, other: true}\n${settings}`)
	await loop.connected('hot-loop', 3)
	await waitForConnection(own, loopChannel, 'connected')
	t.ok(loop.connections('hot-loop')[1]?.closed)
	t.equal(loop.attempts('hot-other'), 1, 'never reconnected')
	t.notOk(otherConnection.closed)
	await otherConnection.say('chat', '/whoami')
	t.match(await read(otherChannel, own), { connection: 'connected' })

	// Changed settings of the plugin `channels`: all connections are closed before they are opened again.
	loop.closeTakes.set('hot-other', 50)
	await reload(`plugins: {loop: {note: changed}, other: true}\nchannels: {retry_max_s: 2}\n`)
	const again = await loop.connected('hot-other', 2)
	t.ok(otherConnection.closed)
	await waitForConnection(own, otherChannel, 'connected')
	await again.say('chat', '/whoami', { id: 'later' })
})

void t.test('an invalid channel of a plugin is reported, and other channels work', async (t) => {
	const pluginWith = (name: string, value: string): Record<string, string> => ({
		[`plugins/${name}/index.js`]: `export default { name: '${name}', needs: ['channels'], start: (ctx) => ctx.extend('channel', ${value}) }`,
	})
	const can = "can: { formats: [{ markup: 'plain', max_length: 100 }] }"
	const rows: [value: string, error: RegExp][] = [
		['null', /not an object/],
		['{}', /type/],
		[`{ type: 'Bad Type', label: 'x', ${can}, connect() {} }`, /type/],
		[`{ type: 'b2', ${can}, connect() {} }`, /label/],
		["{ type: 'b3', label: 'x', can: 'everything', connect() {} }", /can/],
		["{ type: 'b4', label: 'x', can: { formats: [] }, connect() {} }", /can\.formats/],
		[
			"{ type: 'b5', label: 'x', can: { formats: [{ markup: 'rtf', max_length: 9e9 }] }, connect() {} }",
			/can\.formats/,
		],
		["{ type: 'b6', label: 'x', get can() { throw new Error('a trap') }, connect() {} }", /a trap/],
		[`{ type: 'b7', label: 'x', ${can} }`, /connect/],
		[`{ type: 'b8', label: 'x', ${can}, connect() {}, config() { throw new Error('no schema') } }`, /no schema/],
		[`{ type: 'b9', label: 'x', ${can}, connect() {}, config: () => 'schema' }`, /must return joi\.object/],
		[`{ type: 'loop', label: 'x', ${can}, connect() {} }`, /another channel has the type or alias loop/],
	]
	const names = rows.map((_, n) => `odd${n}`)
	const configOf = (some: string[]): string =>
		`plugins: {loop: true, ${some.map((name) => `${name}: true`).join(', ')}}\n`
	// The errors of all of them would be truncated.
	const groups = [names.slice(0, 6), names.slice(6)]
	const own = await startGateway({
		config: configOf(groups[0] ?? []),
		files: Object.assign(loopFiles(), ...rows.map(([value], n) => pluginWith(`odd${n}`, value))),
	})
	t.teardown(() => own.stop())
	for (const group of groups) {
		writeFileSync(join(own.home, 'config/gateway.yaml'), configOf(group))
		const { last_error } = await eventually(
			async () => (await own.request('GET', '/v1/plugins')).body.find((one: Answer) => one.name === 'channels'),
			({ last_error }) => group.every((name) => last_error?.includes(`${name}"`)),
		)
		t.ok(last_error.length < 1_000, last_error)
		const sentences: string[] = last_error.split('; plugin ')
		for (const name of group) {
			const [, error = /$^/] = rows[names.indexOf(name)] ?? []
			t.ok(
				sentences.some((one) => one.includes(`${name}"`) && error.test(one)),
				`${name}: ${last_error}`,
			)
		}
	}
	const id = await addChannel(own, 'sound-token')
	await waitForConnection(own, id, 'connected')
})
