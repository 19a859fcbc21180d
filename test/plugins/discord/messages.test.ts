/** Incoming and outgoing messages of the adapter, over HTTP and WebSocket. */
import t from 'tap'
import type { OutgoingMessage } from '../../../plugins/channels/adapter.ts'
import { failure } from '../../support/channel-failure.ts'
import { startDiscord } from '../../support/discord.ts'
import type { Channel, Failure } from '../../support/discord.ts'
import { eventually } from '../../support/wait.ts'
import { open } from './link.ts'

const server = await startDiscord()
t.teardown(() => server.stop())
const channel = server.addChannel()
const { link, connection } = await open(t, server)

let nonces = 0

function message(fields: Partial<OutgoingMessage> = {}, to: Channel = channel): OutgoingMessage {
	const nonce = String(nonces++).padStart(25, 'n')
	return { chat: { id: to.id, kind: 'group' }, text: 'an answer', markup: 'markdown', nonce, ...fields }
}

/** Sends a message of a person, and returns it as the adapter passes it on. */
async function receive(to: Channel, content: string, fields = {}): Promise<(typeof link.received)[number]> {
	const before = link.received.length
	server.say(to, content, fields)
	await eventually(() => link.received.length > before)
	const received = link.received[before]
	if (!received) throw new Error('nothing was received')
	return received
}

void t.test('a mention addresses the bot, and is not part of the text', async (t) => {
	const id = server.bot.id
	const mentions = { more: { mentions: [server.bot] } }
	for (const [content, text] of [
		[`<@${id}> hello`, 'hello'],
		[`<@!${id}>, hello`, 'hello'],
		[`hello <@${id}>`, 'hello'],
		[`<@${id}> /start`, '/start'],
		[`<@${id}>`, ''],
		[`I like <@${id}> a lot`, 'I like @helper a lot'],
		['<@123> hello', '<@123> hello'],
	] as const) {
		const received = await receive(channel, content, mentions)
		t.strictSame([received.text, received.addressed], [text, true], content)
	}
	const role = await receive(channel, `<@&${server.role_id}> hello`, { more: { mention_roles: [server.role_id] } })
	t.strictSame([role.text, role.addressed], ['hello', true])
	const other = await receive(channel, '<@&55> hello', { more: { mention_roles: ['55'] } })
	t.strictSame([other.text, other.addressed], ['<@&55> hello', false])
})

void t.test('mentions of people become their names', async (t) => {
	const bob = server.addUser('bob', { global_name: 'Bob' })
	const received = await receive(channel, `<@${server.bot.id}> ask <@${bob.id}> and <@!${bob.id}>`, {
		from: bob,
		more: { mentions: [server.bot, bob] },
	})
	t.equal(received.text, 'ask @Bob and @Bob')
	t.strictSame(received.sender, { id: bob.id, name: 'Bob' })
})

void t.test('a reply to the bot addresses it only with a ping', async (t) => {
	const answer = server.say(channel, 'an answer', { from: server.bot })
	const reference = { message_reference: { message_id: answer.id, channel_id: channel.id }, type: 19 }
	t.ok((await receive(channel, 'and then?', { more: { ...reference, mentions: [server.bot] } })).addressed)
	t.notOk((await receive(channel, 'silently', { more: { ...reference, mentions: [] } })).addressed)
	t.notOk((await receive(channel, '@helper @everyone')).addressed)
})

void t.test('a reply quotes the message that it answers', async (t) => {
	const bob = server.addUser('bobby', { global_name: 'Bobby' })
	const quoted = async (referenced_message: object | null): Promise<unknown> => {
		const message_reference = { message_id: '5', channel_id: channel.id }
		const received = await receive(channel, 'that one?', { more: { type: 19, message_reference, referenced_message } })
		t.equal(received.text, 'that one?')
		return received.quoted
	}
	const question = {
		id: '5',
		channel_id: channel.id,
		type: 0,
		author: bob,
		content: `<@${bob.id}> or blue`,
		mentions: [bob],
	}
	t.strictSame(await quoted(question), { text: '@Bobby or blue', sender: 'Bobby' })
	t.match(await quoted({ ...question, author: server.bot, content: 'Blue.' }), { text: 'Blue.', own: true })
	const attachments = [{ content_type: 'image/png' }]
	t.match(await quoted({ ...question, content: '', attachments }), { text: '[an image]' })
	t.equal(await quoted({ ...question, content: '' }), undefined, 'its text may be hidden from the bot')
	t.equal(await quoted(null), undefined, 'it was deleted')
	for (const odd of [{ author: null }, { mentions: [null] }, { content: 5 }, { attachments: [null] }])
		t.equal(await quoted({ ...question, ...odd }), undefined, 'only the quote is omitted')
	t.notOk('quoted' in (await receive(channel, 'no reply')))
})

void t.test('a message names its chat, and the channel and server around it', async (t) => {
	const inServer = await receive(channel, 'x')
	t.strictSame(inServer.chat, { id: channel.id, kind: 'group', within: [server.guild_id] })
	const direct = server.addDirect()
	const inPrivate = await receive(direct, 'x')
	t.strictSame([inPrivate.chat, inPrivate.addressed], [{ id: direct.id, kind: 'private' }, true])
	for (const announced of [true, false]) {
		const thread = server.addThread(channel, announced)
		for (let n = 0; n < 2; n++) {
			const inThread = await receive(thread, 'x')
			t.strictSame(inThread.chat, { id: thread.id, kind: 'group', within: [channel.id, server.guild_id] })
		}
		const lookups = server.calls.filter(({ path }) => path === `/channels/${thread.id}`)
		t.equal(lookups.length, announced ? 0 : 1, 'an unknown thread is looked up once')
	}
})

void t.test('bots, webhooks, notices and invalid messages are ignored', async (t) => {
	const before = link.received.length
	server.say(channel, 'x', { from: server.bot, mention: true })
	server.say(channel, 'x', { from: server.addUser('another', { bot: true }), mention: true })
	server.say(channel, 'x', { mention: true, more: { webhook_id: '1' } })
	for (const type of [6, 7, 18, 20, 21, 23, 46]) server.say(channel, 'x', { mention: true, type })
	const proper = server.say(channel, 'x', { told: false })
	server.tell({ ...proper, id: '../1' })
	server.tell({ ...proper, author: { ...proper.author, id: 'x' } })
	await receive(channel, 'the last')
	t.equal(link.received.length, before + 1)
})

void t.test('invalid packets are ignored', async (t) => {
	for (const type of ['MESSAGE_CREATE', 'GUILD_CREATE', 'CHANNEL_UPDATE', 'THREAD_CREATE', 'GUILD_ROLE_CREATE'])
		for (const packet of [null, {}, 'text', { id: '1', guild_id: '2', channel_id: '3' }]) server.packet(type, packet)
	t.equal((await receive(channel, 'still here?', { mention: true })).text, 'still here?')
	t.strictSame(link.losses, [])
})

void t.test('an unreadable message is skipped with a warning, and the connection continues', async (t) => {
	const skipped: string[] = []
	for (const more of [
		{ mentions: null },
		{ mentions: [null] },
		{ mention_roles: null },
		{ content: 5 },
		{ content: null },
		{ attachments: null },
		{ attachments: [null] },
	]) {
		const proper = server.say(channel, 'a secret word', { told: false })
		server.packet('MESSAGE_CREATE', { ...proper, guild_id: server.guild_id, ...more })
		skipped.push(proper.id)
	}
	t.equal((await receive(channel, 'still here?', { mention: true })).text, 'still here?')
	t.strictSame(link.losses, [])
	const warnings = link.logged.filter((line) => line.includes('cannot be read'))
	for (const id of skipped) t.ok(warnings.some((line) => line.includes(id)))
	t.notMatch(warnings.join('\n'), /a secret word|Cannot read/)
})

void t.test('content other than text is named', async (t) => {
	const file = (content_type?: string): object => ({ id: '1', filename: 'x', content_type })
	for (const [more, attachment] of [
		[{}, undefined],
		[{ attachments: [file('image/png')] }, 'an image'],
		[{ attachments: [file('image/png'), file('image/gif')] }, '2 images'],
		[{ attachments: [file('image/png'), file('text/plain')] }, '2 files'],
		[{ attachments: [file('audio/ogg')], flags: 8192 }, 'a voice message'],
		[{ attachments: [file('video/mp4')] }, 'a video'],
		[{ attachments: [file()] }, 'a file'],
		[{ sticker_items: [{ id: '1' }] }, 'a sticker'],
		[{ poll: { question: {} } }, 'a poll'],
		[{ message_snapshots: [{}] }, 'a forwarded message'],
	] as const)
		t.equal((await receive(channel, '', { more })).attachment, attachment)
})

void t.test('an answer pings nobody, shows no previews, and is a reply on request', async (t) => {
	const question = server.say(channel, 'a question')
	const { id } = await connection.send(
		message({ text: '@everyone **see** https://example.com', reply_to: question.id }),
	)
	const call = server.calls.findLast(({ method }) => method === 'POST')
	t.match(call, { path: `/channels/${channel.id}/messages`, status: 200 })
	t.strictSame(call?.body, {
		content: '@everyone **see** https://example.com',
		nonce: call?.body.nonce,
		enforce_nonce: true,
		flags: 4,
		allowed_mentions: { parse: [], replied_user: false },
		message_reference: { message_id: question.id, fail_if_not_exists: false },
	})
	t.equal(server.written(channel).at(-1)?.id, id)
	const gone = await connection.send(message({ reply_to: '1' }))
	t.ok(gone.id, 'even if the answered message is gone')
})

void t.test('an answer grows by edits, which ping nobody either', async (t) => {
	const draft = message({ text: 'one' })
	const { id } = await connection.send(draft)
	await connection.edit?.(id, { ...draft, text: 'one two' })
	await connection.edit?.(id, { ...draft, text: 'one two' })
	t.match(server.written(channel).at(-1), { id, content: 'one two', drafts: ['one', 'one two'] })
	const call = server.calls.findLast(({ method }) => method === 'PATCH')
	t.strictSame(call?.body, { content: 'one two', allowed_mentions: { parse: [], replied_user: false } })
	await connection.typing?.({ id: channel.id })
	t.match(server.calls.at(-1), { method: 'POST', path: `/channels/${channel.id}/typing` })
})

void t.test('a message whose response was lost is not sent twice', async (t) => {
	for (const how of ['after', 'before', { status: 500 }] as const) {
		const quiet = server.addChannel()
		const once = message({ text: `said once: ${JSON.stringify(how)}` }, quiet)
		// discord.js retries once after a server error.
		server.fail({ method: 'POST', path: /messages/, how, times: typeof how === 'object' ? 2 : 1 })
		const error = await failure(connection.send(once))
		t.notOk(error.code && ['format', 'limited', 'failed', 'refused'].includes(error.code), 'its outcome is unknown')
		const { id } = await connection.send(once)
		t.strictSame(
			server.written(quiet).map((one) => one.id),
			[id],
		)
	}
})

void t.test('after its nonce has expired, a message is found by its text', async (t) => {
	const quiet = server.addChannel()
	const same = await connection.send(message({ text: 'ok' }, quiet))
	const once = message({ text: 'ok' }, quiet)
	const mark = connection.mark?.(once.chat)
	t.equal(await connection.find?.(once, mark), undefined, 'an earlier message with this text is another one')
	server.fail({ method: 'POST', path: /messages/, how: 'after' })
	await failure(connection.send(once))
	server.say(quiet, 'ok')
	const found = await connection.find?.(once, mark)
	t.ok(found && found.id !== same.id)
	t.equal(server.written(quiet).at(-1)?.id, found?.id)
	t.equal(await connection.find?.({ ...once, text: 'something else' }, mark), undefined)
	t.equal(await connection.find?.(once, 'not an id'), undefined)

	// If nonces can be read, they decide.
	server.noncesShown = true
	t.equal((await connection.find?.(once, mark))?.id, found?.id)
	t.equal(await connection.find?.({ ...once, nonce: 'x'.repeat(25) }, mark), undefined)
	server.noncesShown = false

	// A connection that has received nothing from the chat has a mark too.
	const { connection: fresh } = await open(t, server)
	const another = message({ text: 'again' }, quiet)
	const early = fresh.mark?.(another.chat)
	server.fail({ method: 'POST', path: /messages/, how: 'after' })
	await failure(fresh.send(another))
	t.equal((await fresh.find?.(another, early))?.id, server.written(quiet).at(-1)?.id)
})

void t.test('errors state whether the message was sent, and what to do', async (t) => {
	const limit = { 'retry-after': '7', 'x-ratelimit-global': 'true' }
	for (const [how, expected] of [
		[
			{ status: 403, body: { code: 50013, message: 'Missing Permissions' } },
			{ code: 'refused', message: /Send Messages/ },
		],
		[
			{ status: 403, body: { code: 50001, message: 'Missing Access' } },
			{ code: 'refused', message: /View Channel/ },
		],
		[
			{ status: 403, body: { code: 50007, message: 'Cannot send' } },
			{ code: 'refused', message: /direct messages/ },
		],
		[
			{ status: 404, body: { code: 10003, message: 'Unknown Channel' } },
			{ code: 'refused', message: /channel no longer exists/ },
		],
		[
			{ status: 400, body: { code: 50083, message: 'Thread is archived' } },
			{ code: 'refused', message: /archived/ },
		],
		[
			{ status: 400, body: { code: 50035, message: 'Invalid Form Body' } },
			{ code: 'format', message: /Invalid Form/ },
		],
		[
			{ status: 403, body: '<html>a proxy</html>' },
			{ code: 'failed', message: /in front of Discord .* status 403$/ },
		],
		[{ status: 429, body: { retry_after: 7, global: true }, headers: limit }, { code: 'limited' }],
	] as [Failure['how'], object][]) {
		server.fail({ method: 'POST', path: /messages/, how })
		const error = await failure(connection.send(message()))
		t.match(error, expected, JSON.stringify(how))
		if (error.code === 'limited') t.ok((error.retry_after_ms ?? 0) >= 7_000, `${error.retry_after_ms}`)
		t.notMatch(JSON.stringify([error, error.message, error.stack]), server.token)
	}
	t.strictSame(link.losses, [], 'none of them ends the connection')
})

void t.test('an invalid id does not become part of an address', async (t) => {
	const before = server.calls.length
	for (const id of ['../users/@me', '1/../2', '', 'x', '1?a=b']) {
		const to = { chat: { id, kind: 'group' } } as const
		t.equal((await failure(connection.send(message(to)))).code, 'refused')
		t.equal((await failure(connection.edit?.('1', message(to)))).code, 'refused')
		t.equal((await failure(connection.typing?.(to.chat))).code, 'refused')
		t.equal((await failure(connection.find?.(message(to), '1'))).code, 'refused')
	}
	t.equal(server.calls.length, before)
})

void t.test('a message that is too long is a format error', async (t) => {
	const { connection: other } = await open(t, server)
	t.equal((await failure(other.send(message({ text: 'x'.repeat(2001) })))).code, 'format')
	t.equal((await failure(other.send(message({ text: '\n \n' })))).code, 'refused')
	await other.send(message({ text: 'x'.repeat(2000) }))
})

void t.test('the log does not contain the token', async (t) => {
	t.notMatch(link.logged.join('\n'), server.token)
})
