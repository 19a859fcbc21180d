/** Runs the suite on the example channel, as any author would, and tests what is specific to Matrix. */
import t from 'tap'
import matrix from '../../../skills-examples/matrix-channel/index.ts'
import { startHomeserver } from '../../support/matrix.ts'
import type { Content } from '../../support/matrix.ts'
import { checkChannel } from '../channel.ts'
import { Harness } from './harness.ts'
import { adapterOf, matrixPlatform } from './matrix-platform.ts'

const adapter = adapterOf(matrix)
checkChannel(t, {
	adapter,
	platform: matrixPlatform,
	abilities: { drafts: false, find: false, failed: false }, // it has nonces instead of find
})

/** A homeserver, and a harness for its bot. */
async function open(config: object = {}) {
	const server = await startHomeserver()
	const [bot, alice] = [server.user('bot', 'Bot'), server.user('alice', 'Alice')]
	const platform = {
		...(await matrixPlatform()),
		token: server.token(bot),
		config: { api_root: server.url, ...config },
	}
	const harness = new Harness({ adapter, platform: matrixPlatform }, platform)
	t.teardown(async () => {
		await harness.leave()
		await server.close()
	})
	return { server, bot, alice, harness }
}

void t.test('invalid fields in an event do not block later events', async (t) => {
	const { server, bot, alice, harness } = await open()
	const room = server.room(alice, bot)
	await harness.connect()
	const text = { msgtype: 'm.text', body: 'odd' }
	const odd: Content[] = [
		{},
		{ msgtype: 'm.text' },
		{ msgtype: ['m.text'], body: 'odd' },
		{ msgtype: 'm.text', body: { deep: true } },
		{ ...text, 'm.mentions': null },
		{ ...text, 'm.mentions': { user_ids: bot } },
		{ ...text, 'm.relates_to': 7 },
		{ ...text, 'm.relates_to': null },
		{ ...text, 'm.relates_to': { rel_type: 'm.thread', event_id: 'x'.repeat(5000) } },
		{ ...text, 'm.relates_to': { rel_type: 'm.thread', event_id: { $ne: '' } } },
		{ ...text, 'm.relates_to': { 'm.in_reply_to': { event_id: '$ü' } } },
		{ ...text, 'm.relates_to': { 'm.in_reply_to': { event_id: '../../../../account/whoami' } } },
		{ ...text, 'm.relates_to': { 'm.in_reply_to': null } },
	]
	for (const content of odd) server.say(room, alice, content)
	server.say(room, alice, { msgtype: 'm.notice', body: 'a bot says' })
	server.say(room, alice, { ...text, 'm.relates_to': { rel_type: 'm.replace', event_id: '$x' }, 'm.new_content': text })
	server.say(room, alice, 'and then')
	await harness.waitForMessage('and then')
	t.notOk(harness.received.some(({ chat }) => chat.thread_id !== undefined))
	t.notOk(harness.received.some(({ text }) => text === 'a bot says'))
	t.equal(harness.received.length, odd.length - 2 + 1, 'all messages arrive, but no edit')
})

void t.test('the bot gets messages from its invitation on, not earlier ones', async (t) => {
	const { server, bot, alice, harness } = await open()
	await harness.connect()
	const room = server.room(alice, server.user('carol'))
	for (let i = 0; i < 120; i++) server.say(room, alice, `${bot} before ${i}`)
	server.invite(room, bot, alice)
	server.say(room, alice, `${bot} hurry`)
	await harness.waitForMessage('hurry')
	server.say(room, alice, `${bot} now`)
	await harness.waitForMessage('now')
	t.strictSame(
		harness.received.map(({ text }) => text),
		['hurry', 'now'],
	)
})

void t.test('accept_invites: none', async (t) => {
	const { server, bot, alice, harness } = await open({ accept_invites: 'none' })
	await harness.connect()
	const other = server.room(alice)
	server.invite(other, bot, alice)
	const room = server.room(alice, bot)
	server.say(room, alice, 'hello')
	await harness.waitForMessage('hello')
	t.notOk(server.isJoined(other, bot))
})

void t.test('waits as long as the homeserver requests, in a header or in the body', async (t) => {
	const { server, bot, alice, harness } = await open()
	const room = server.room(alice, bot)
	const { connection } = await harness.connect()
	const message = { chat: { id: room, kind: 'private' }, text: 'hello', markup: 'plain', nonce: 'n' } as const
	for (const [headers, body, ms] of [
		[{ 'retry-after': '7' }, {}, 7000],
		[{}, { errcode: 'M_LIMIT_EXCEEDED', retry_after_ms: 1234 }, 1234],
		[{ 'retry-after': 'Fri, 31 Dec 2027 23:59:59 GMT' }, {}, 1000],
	] as const) {
		server.fail(/\/send\//, { status: 429, headers, body })
		await t.rejects(connection.send(message), { code: 'limited', retry_after_ms: ms })
	}
})
