/** The adapter's connection to a Discord server: login, refusals, broken connections, missed messages, close. */
import t from 'tap'
import { connect } from '../../../plugins/discord/connection.ts'
import { snowflakeAt } from '../../../plugins/discord/snowflake.ts'
import type { IncomingMessage } from '../../../plugins/channels/adapter.ts'
import { failure } from '../../support/channel-failure.ts'
import { startDiscord } from '../../support/discord.ts'
import type { DiscordServer } from '../../support/discord.ts'
import { eventually } from '../../support/wait.ts'
import { linkTo, open } from './link.ts'

// The tests mostly wait for discord.js, which pauses before each retry.
t.jobs = 12

const LONG_AGO = '2020-01-01T00:00:00.000Z'

async function discord(t: { teardown(end: () => unknown): void }): Promise<DiscordServer> {
	const server = await startDiscord()
	t.teardown(() => server.stop())
	return server
}

function texts({ received }: { received: IncomingMessage[] }): string[] {
	return received.map(({ text }) => text)
}

void t.test('login requests the required intents, and returns the name of the bot', async (t) => {
	const server = await discord(t)
	const { connection } = await open(t, server)
	t.equal(connection.name, '@helper')
	const identify = server.received.find(({ op }) => op === 2)?.d
	t.equal(identify.intents, 1 | 512 | 4096 | 32768, 'servers, their messages, direct messages, content')
	t.equal(identify.token, server.token)
})

void t.test('a wrong token is refused at once, and the error states what to do', async (t) => {
	const server = await discord(t)
	const error = await failure(connect(linkTo({ url: server.url, token: 'another' })))
	t.equal(error.code, 'refused')
	t.match(error.message, /Reset Token/)
	t.notMatch(JSON.stringify([error.message, error.stack, error.cause]), /another/)
	t.equal(server.calls.length, 1, 'it stops at the first 401')
	const blanks = await failure(connect(linkTo({ url: server.url, token: 'two words' })))
	t.equal(blanks.code, 'refused')
	t.equal(server.calls.length, 1, 'an invalid token is not sent')
})

void t.test('close codes after which only a person can help are refusals', async (t) => {
	for (const [code, message] of [
		[4004, /Reset Token/],
		[4011, /too many|more servers/],
		[4013, /4013/],
		[4014, /Message Content Intent/],
	] as const) {
		const server = await discord(t)
		server.refusal = code
		const error = await failure(connect(linkTo(server)))
		t.equal(error.code, 'refused', `${code}`)
		t.match(error.message, message, `${code}`)
	}
})

void t.test('without the message content intent it works in part, and reports that', async (t) => {
	const server = await discord(t)
	server.contentAllowed = false
	const channel = server.addChannel()
	const { link } = await open(t, server)
	await eventually(() => link.statuses.length > 0)
	t.match(link.statuses, [/^connected: .*Message Content Intent.*developer portal/])
	server.say(channel, 'not for the bot')
	server.say(channel, 'hello', { mention: true })
	server.say(server.addDirect(), 'in private')
	await eventually(() => link.received.length === 3)
	t.strictSame(texts(link), ['', 'hello', 'in private'])
})

void t.test('an intent that is switched off during a connection does not prevent a retry', async (t) => {
	const server = await discord(t)
	const { link } = await open(t, server)
	server.contentAllowed = false
	server.close(4014)
	await eventually(() => link.losses.length > 0)
	t.match(link.losses, [{ message: /Message Content Intent/ }])
	t.notOk('code' in (link.losses[0] ?? {}), 'the loss is retried')
})

void t.test('an unreachable platform, or one without sessions left, is retried', async (t) => {
	const server = await discord(t)
	server.remaining = 0
	const exhausted = await failure(connect(linkTo(server)))
	t.notOk('code' in exhausted && exhausted.code === 'refused')
	t.match(exhausted.message, /sessions remaining/)
	await server.stop()
	const away = await failure(connect(linkTo(server)))
	t.equal(away.code, 'failed')
})

void t.test('an aborted connection ends, and leaves no socket', async (t) => {
	const server = await discord(t)
	server.refusal = 1001 // the server ends each connection, so discord.js is never connected
	const link = linkTo(server)
	const connecting = failure(connect(link))
	await eventually(() => server.received.some(({ op }) => op === 2))
	link.abort()
	t.match((await connecting).message, /ended by the test/)
	await eventually(() => server.sockets === 0)
})

void t.test('a broken connection is resumed, and no message is lost', async (t) => {
	const server = await discord(t)
	const channel = server.addChannel()
	const { link } = await open(t, server)
	for (const interrupt of [server.cut, server.tellToReconnect, () => server.close(4000), () => server.close(1001)]) {
		const resumed = server.received.filter(({ op }) => op === 6).length
		const before = link.received.length
		interrupt()
		await eventually(() => server.connected === 0)
		server.say(channel, 'meanwhile', { mention: true })
		await eventually(() => link.received.length === before + 1)
		t.equal(server.received.filter(({ op }) => op === 6).length, resumed + 1)
	}
	t.equal(server.received.filter(({ op }) => op === 2).length, 1)
	t.strictSame([...new Set(link.statuses.map((status) => status.split(':')[0]))], ['reconnecting', 'connected'])
	t.equal(link.statuses.at(-1), 'connected')
	t.strictSame(link.losses, [])
})

void t.test('a session whose heartbeats are not answered is resumed with a new connection', async (t) => {
	const server = await discord(t)
	server.heartbeat_ms = 50
	const channel = server.addChannel()
	const { link } = await open(t, server)
	server.deaf = true
	await eventually(() => link.statuses.length > 0)
	t.match(link.statuses, [/^reconnecting/])
	server.deaf = false
	await eventually(() => link.statuses.at(-1) === 'connected')
	server.say(channel, 'still there?', { mention: true })
	await eventually(() => link.received.length === 1)
})

void t.test('a connection that does not recover is reported as lost, so that delays grow', async (t) => {
	const server = await discord(t)
	const link = linkTo(server)
	const connection = await connect(link, { recover_ms: 900 })
	t.teardown(() => connection.close())
	server.cut()
	server.refusal = 1001
	server.forget()
	await eventually(() => link.losses.length > 0)
	t.match(link.losses, [{ message: /not reached/ }])
	t.notOk('code' in (link.losses[0] ?? {}))
	t.strictSame(link.statuses, ['reconnecting: the connection to Discord was lost'], 'reported once')
})

void t.test('a new session requests the messages since the newest accepted one', async (t) => {
	const server = await discord(t)
	const channel = server.addChannel()
	const direct = server.addDirect()
	const old = server.say(channel, 'old', { mention: true })
	const { link } = await open(t, server, {
		known: [
			{ id: channel.id, last_id: old.id, bound_at: LONG_AGO },
			{ id: direct.id, last_id: '1', bound_at: LONG_AGO },
			{ id: '404', last_id: '1', bound_at: LONG_AGO },
		],
	})
	await eventually(() => link.received.length === 1)
	t.strictSame(texts(link), ['old'], 'some minutes overlap; duplicates are harmless')
	server.cut()
	await eventually(() => server.connected === 0)
	for (let n = 0; n < 205; n++) server.say(channel, `${n}`, { mention: true, told: false })
	server.say(direct, 'in private', { told: false })
	server.invalidate()
	await eventually(() => server.connected === 1 && link.received.length === 208)
	t.strictSame(
		texts(link).filter((text) => /^\d+$/.test(text)),
		Array.from({ length: 205 }, (_, n) => `${n}`),
		'all pages, in order',
	)
	const inPrivate = link.received.find(({ text }) => text === 'in private')
	t.strictSame([inPrivate?.chat.kind, inPrivate?.addressed], ['private', true])
	t.strictSame(link.losses, [])
})

void t.test('an unreadable message among missed ones is skipped', async (t) => {
	const server = await discord(t)
	const channel = server.addChannel()
	const first = server.say(channel, 'first', { mention: true, told: false })
	const unreadable = [{ mentions: null }, { author: null }, { content: 5 }].map((more) => ({
		...first,
		id: `${BigInt(first.id) + 1n}`,
		...more,
	}))
	const rest = Array.from({ length: 96 }, (_, n) => ({
		...first,
		id: `${BigInt(first.id) + 2n + BigInt(n)}`,
		content: '',
	}))
	server.fail({ method: 'GET', path: /messages$/, how: { status: 200, body: [null, ...unreadable, ...rest] } })
	const last = server.say(channel, 'last', { mention: true, told: false, more: { id: `${BigInt(first.id) + 1000n}` } })
	const { link } = await open(t, server, { known: [{ id: channel.id, last_id: first.id, bound_at: LONG_AGO }] })
	await eventually(() => link.received.some(({ id }) => id === last.id))
	t.equal(link.received.length, 97, 'the next page is requested')
	t.strictSame(link.losses, [])
})

void t.test('a missed message is found even if it is the first one of its channel', async (t) => {
	const server = await discord(t)
	const [known, quiet, fresh] = [server.addChannel(), server.addChannel(), server.addChannel()]
	const thread = server.addThread(fresh)
	server.say(quiet, 'long ago', { more: { id: snowflakeAt(Date.now() - 3_600_000) } })
	server.say(fresh, 'hello', { mention: true })
	server.say(thread, 'hello in a thread', { mention: true })
	const cursor = server.say(known, 'taken', { mention: true }).id
	const { link } = await open(t, server, {
		cursor: async () => cursor,
		known: [{ id: known.id, last_id: cursor, bound_at: LONG_AGO }],
	})
	await eventually(() => link.received.length === 3)
	t.strictSame(texts(link).toSorted(), ['hello', 'hello in a thread', 'taken'])
	const requested = server.calls
		.filter(({ path }) => path.endsWith('/messages'))
		.map(({ path }) => path.split('/')[2] ?? '')
	t.strictSame(requested.toSorted(), [known.id, fresh.id, thread.id].toSorted(), 'the other channels are not requested')
})

void t.test('messages from before the binding, or older than a day, are not requested', async (t) => {
	const server = await discord(t)
	const [bound, ancient] = [server.addChannel(), server.addChannel()]
	const bound_at = new Date().toISOString()
	await open(t, server, {
		known: [
			{ id: bound.id, last_id: '1', bound_at },
			{ id: ancient.id, last_id: '1', bound_at: LONG_AGO },
		],
	})
	const requestedAfter = (id: string): bigint =>
		BigInt(server.calls.find(({ path }) => path === `/channels/${id}/messages`)?.query.get('after') ?? 0)
	await eventually(() => requestedAfter(bound.id) > 0n && requestedAfter(ancient.id) > 0n)
	t.equal(requestedAfter(bound.id), BigInt(snowflakeAt(Date.parse(bound_at))))
	t.ok(requestedAfter(ancient.id) >= BigInt(snowflakeAt(Date.now() - 25 * 3_600_000)))
})

void t.test('a chat receives new messages only after its missed ones', async (t) => {
	const server = await discord(t)
	const [behind, other] = [server.addChannel(), server.addChannel()]
	const first = server.say(behind, 'first', { mention: true, told: false })
	server.fail({ method: 'GET', path: /messages/, how: { status: 502 }, times: 2 })
	const { link } = await open(t, server, {
		known: [{ id: behind.id, last_id: first.id, bound_at: LONG_AGO }],
	})
	server.say(behind, 'second', { mention: true })
	server.say(other, 'elsewhere', { mention: true })
	await eventually(() => link.received.length === 1)
	t.strictSame(texts(link), ['elsewhere'])
	await eventually(() => texts(link).includes('second'))
	t.strictSame([...new Set(texts(link))], ['elsewhere', 'first', 'second'])
})

void t.test('a message that is not accepted ends the connection, and the next one requests it', async (t) => {
	const server = await discord(t)
	const channel = server.addChannel()
	let full = false
	const { link } = await open(t, server, {
		gate() {
			if (full) throw new Error('no space left')
		},
	})
	const accepted = server.say(channel, 'accepted', { mention: true })
	await eventually(() => link.received.length === 1)
	full = true
	server.say(channel, 'refused', { mention: true })
	server.say(channel, 'behind it', { mention: true })
	await eventually(() => link.losses.length > 0)
	t.match(link.losses, [{ message: 'no space left' }])
	t.equal(link.losses.length, 1)
	t.strictSame(texts(link), ['accepted'], 'no message overtakes it')
	const { link: next } = await open(t, server, {
		known: [{ id: channel.id, last_id: accepted.id, bound_at: LONG_AGO }],
	})
	await eventually(() => next.received.length === 3)
	t.strictSame(texts(next), ['accepted', 'refused', 'behind it'])
})

void t.test('a token that is revoked during a connection ends it as refused', async (t) => {
	const server = await discord(t)
	const channel = server.addChannel()
	const { link, connection } = await open(t, server)
	Object.assign(server, { token: 'a-new-one' })
	const nonce = 'n'.repeat(25)
	const message = { chat: { id: channel.id, kind: 'group' }, text: 'x', markup: 'plain', nonce } as const
	t.equal((await failure(connection.send(message))).code, 'failed', 'it can be sent with the next token')
	t.match(link.losses, [{ code: 'refused', message: /Reset Token/ }])
})

void t.test('a closed connection is silent and leaves no socket, whenever it is closed', async (t) => {
	for (const moment of ['connected', 'between attempts', 'catching up', 'the network gone']) {
		const server = await discord(t)
		const channel = server.addChannel()
		if (moment === 'catching up') server.fail({ method: 'GET', path: /messages/, how: { status: 500 }, times: 99 })
		const link = linkTo(server)
		link.known = [{ id: channel.id, last_id: '1', bound_at: LONG_AGO }]
		const connection = await connect(link)
		if (moment === 'between attempts') {
			server.cut()
			await eventually(() => link.statuses.length > 0)
		}
		if (moment === 'the network gone') server.vanish(true)
		link.abort()
		await connection.close()
		t.strictSame(link.logged, [], `${moment}: it closes in time`)
		server.vanish(false)
		const { statuses, losses } = structuredClone({ statuses: link.statuses, losses: link.losses.length })
		await eventually(() => server.sockets === 0)
		// Longer than discord.js pauses before it reconnects.
		const before = Date.now()
		await eventually(() => Date.now() > before + 700)
		t.equal(server.sockets, 0, moment)
		t.strictSame([link.statuses, link.losses.length], [statuses, losses], moment)
	}
})
