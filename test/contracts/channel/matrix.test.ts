/** The example of a channel, checked as any author checks theirs; and what only Matrix has. */
import t from 'tap'
import matrix from '../../../skills-examples/matrix-channel/index.ts'
import { startHomeserver } from '../../support/matrix.ts'
import type { Content } from '../../support/matrix.ts'
import { checkChannel } from '../channel.ts'
import { Desk } from './desk.ts'
import { adapterOf, matrixPlatform } from './matrix-platform.ts'

const adapter = adapterOf(matrix)
checkChannel(t, {
	adapter,
	platform: matrixPlatform,
	abilities: { drafts: false, find: false, failed: false }, // it knows nonces instead of find
})

/** A homeserver that is at hand, and a desk for its bot. */
async function open(config: object = {}) {
	const server = await startHomeserver()
	const [bot, alice] = [server.user('bot', 'Bot'), server.user('alice', 'Alice')]
	const platform = {
		...(await matrixPlatform()),
		token: server.token(bot),
		config: { api_root: server.url, ...config },
	}
	const desk = new Desk({ adapter, platform: matrixPlatform }, platform)
	t.teardown(async () => {
		await desk.leave()
		await server.close()
	})
	return { server, bot, alice, desk }
}

void t.test('whatever people write into an event, those behind it come', async (t) => {
	const { server, bot, alice, desk } = await open()
	const room = server.room(alice, bot)
	await desk.connect()
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
	await desk.heard('and then')
	t.notOk(desk.received.some(({ chat }) => chat.thread_id !== undefined))
	t.notOk(desk.received.some(({ text }) => text === 'a bot says'))
	t.equal(desk.received.length, odd.length - 2 + 1, 'all that are messages came, and no edit')
})

void t.test('what was said before the bot was invited is not for it, what was said since is', async (t) => {
	const { server, bot, alice, desk } = await open()
	await desk.connect()
	const room = server.room(alice, server.user('carol'))
	for (let i = 0; i < 120; i++) server.say(room, alice, `${bot} before ${i}`)
	server.invite(room, bot, alice)
	server.say(room, alice, `${bot} hurry`)
	await desk.heard('hurry')
	server.say(room, alice, `${bot} now`)
	await desk.heard('now')
	t.strictSame(
		desk.received.map(({ text }) => text),
		['hurry', 'now'],
	)
})

void t.test('accept_invites: none', async (t) => {
	const { server, bot, alice, desk } = await open({ accept_invites: 'none' })
	await desk.connect()
	const other = server.room(alice)
	server.invite(other, bot, alice)
	const room = server.room(alice, bot)
	server.say(room, alice, 'hello')
	await desk.heard('hello')
	t.notOk(server.isJoined(other, bot))
})

void t.test('waits as long as the homeserver says, in either way to say it', async (t) => {
	const { server, bot, alice, desk } = await open()
	const room = server.room(alice, bot)
	const { connection } = await desk.connect()
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
