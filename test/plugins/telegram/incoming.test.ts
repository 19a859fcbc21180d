/** Updates of the Bot API are converted to incoming messages. */
import t from 'tap'
import type { Update } from 'grammy/types'
import { incomingOf } from '../../../plugins/telegram/incoming.ts'

const me = { id: 100200, username: 'gate_test_bot' }
const ada = { id: 42, is_bot: false, first_name: 'Ada', last_name: 'Lovelace' }
const inPrivate = { id: 42, type: 'private', first_name: 'Ada' }
const team = { id: -1_001_234_567_890, type: 'supergroup', title: 'Team' }

type Fields = Record<string, unknown>

function incoming(message: Fields): ReturnType<typeof incomingOf> {
	const update = { update_id: 9, message: { message_id: 5, date: 1, chat: inPrivate, from: ada, ...message } }
	return incomingOf(update as unknown as Update, me)
}

/** A message in a group, with its mentions and commands marked as Telegram does. */
function inGroup(text: string, fields: Fields = {}): ReturnType<typeof incomingOf> {
	const entities = [...text.matchAll(/(?<![\w/])(@\w+|\/\w+(@\w+)?)/g)].map(({ index, 0: all }) => ({
		type: all.startsWith('@') ? 'mention' : 'bot_command',
		offset: index,
		length: all.length,
	}))
	return incoming({ chat: team, text, entities, ...fields })
}

void t.test('a private message is addressed to the bot', async (t) => {
	t.strictSame(incoming({ text: 'Hello' }), {
		id: '5',
		chat: { id: '42', kind: 'private' },
		sender: { id: '42', name: 'Ada Lovelace' },
		text: 'Hello',
		addressed: true,
		cursor: '9',
	})
	t.match(incoming({ text: 'Hello', message_thread_id: 3, is_topic_message: true }), { chat: { thread_id: '3' } })
})

void t.test('a group message addresses the bot by a mention or one of its commands', async (t) => {
	const cases: [string, boolean, string][] = [
		['hello all', false, 'hello all'],
		['@gate_test_bot hello', true, 'hello'],
		['  @Gate_Test_Bot, hello', true, 'hello'],
		['hello @gate_test_bot', true, 'hello'],
		['@gate_test_bot', true, ''],
		['@gate_test_bot @gate_test_bot what is @gate_test_bot for?', true, 'what is @gate_test_bot for?'],
		['@gate_test_bot_2 hello', false, '@gate_test_bot_2 hello'],
		['@gate_test hello', false, '@gate_test hello'],
		['/stop@gate_test_bot', true, '/stop'],
		['/stop@GATE_TEST_BOT now', true, '/stop now'],
		['/start', true, '/start'],
		['/other', false, '/other'],
		['no /stop', false, 'no /stop'],
	]
	for (const [input, addressed, text] of cases) {
		const message = inGroup(input)
		t.strictSame(
			{ addressed: message?.addressed, text: message?.text, kind: message?.chat.kind },
			{ addressed, text, kind: 'group' },
			input,
		)
	}
	t.equal(inGroup('/stop@other_bot'), undefined, 'a command for another bot')
	t.equal(
		incoming({ chat: team, text: 'mail me@gate_test_bot' })?.addressed,
		false,
		'text that Telegram does not mark is no mention',
	)
})

void t.test('a mention may have no user name, or be in a caption', async (t) => {
	const entity = { type: 'text_mention', offset: 0, length: 4, user: { id: me.id, is_bot: true, first_name: 'Gate' } }
	t.match(incoming({ chat: team, text: 'Gate hi', entities: [entity] }), { addressed: true, text: 'hi' })
	const others = { ...entity, user: { ...entity.user, id: 1 } }
	t.match(incoming({ chat: team, text: 'Gate hi', entities: [others] }), { addressed: false, text: 'Gate hi' })
	const caption = { caption: 'see @gate_test_bot', caption_entities: [{ type: 'mention', offset: 4, length: 14 }] }
	t.match(incoming({ chat: team, photo: [{}], ...caption }), { addressed: true, text: 'see', attachment: 'a photo' })
})

void t.test('a reply to the bot addresses it', async (t) => {
	const own = { message_id: 2, from: { ...me, is_bot: true } }
	t.equal(inGroup('yes', { reply_to_message: own })?.addressed, true)
	t.equal(inGroup('yes', { reply_to_message: { message_id: 2, from: ada } })?.addressed, false)
	const topic = { ...own, forum_topic_created: { name: 'T' } }
	t.equal(
		inGroup('yes', { reply_to_message: topic })?.addressed,
		false,
		'every message of a topic replies to the first one',
	)
})

void t.test('a reply quotes the message that it answers', async (t) => {
	const quoted = (fields: Fields): unknown => incoming({ text: 'that one?', ...fields })?.quoted
	const of = (fields: Fields): Fields => ({ reply_to_message: { message_id: 2, from: ada, ...fields } })
	const own = { from: { ...me, is_bot: true, first_name: 'Gate' } }
	const by = { sender: 'Ada Lovelace' }
	t.strictSame(quoted(of({ text: 'red or blue' })), { text: 'red or blue', ...by })
	t.strictSame(quoted(of({ caption: 'the roof', photo: [{}] })), { text: 'the roof', ...by })
	t.strictSame(quoted(of({ photo: [{}] })), { text: '[a photo]', ...by })
	t.strictSame(quoted({ ...of({ text: 'red or blue' }), quote: { text: 'blue', position: 7 } }), {
		text: 'blue',
		...by,
	})
	t.strictSame(quoted(of({ ...own, text: 'Blue.' })), { text: 'Blue.', sender: 'Gate', own: true })
	const blocks = [{ type: 'paragraph', text: 'Blue, then.' }]
	t.match(quoted(of({ ...own, rich_message: { blocks } })), { text: /Blue, then\./, own: true })
	t.strictSame(quoted(of({ text: 'news', sender_chat: team })), { text: 'news', sender: 'Team' })
	t.strictSame(quoted(of({ ...own, forum_topic_created: { name: 'T' } })), undefined)
	t.strictSame(quoted({}), undefined)
	t.match(incoming({ text: 'and?', ...of({ rich_message: {} }) }), { text: 'and?', quoted: undefined })
	t.equal(incoming({ text: '/stop', ...of({ text: 'Working' }) })?.text, '/stop')

	const external = (origin: Fields, more: Fields = {}): unknown =>
		quoted({ external_reply: { origin }, quote: { text: 'far', position: 0 }, ...more })
	t.strictSame(external({ type: 'user', sender_user: ada }), { text: 'far', ...by })
	t.strictSame(external({ type: 'hidden_user', sender_user_name: 'Bea' }), { text: 'far', sender: 'Bea' })
	t.strictSame(external({ type: 'channel', chat: team }), { text: 'far', sender: 'Team' })
	const origin = { type: 'chat', sender_chat: team }
	t.strictSame(quoted({ external_reply: { origin, voice: {} } }), { text: '[a voice message]', sender: 'Team' })
	t.strictSame(quoted({ external_reply: { origin } }), undefined)
})

void t.test('a topic has its own conversation, a thread of replies does not', async (t) => {
	t.strictSame(inGroup('x', { message_thread_id: 77, is_topic_message: true })?.chat, {
		id: String(team.id),
		kind: 'group',
		thread_id: '77',
	})
	t.strictSame(inGroup('x', { message_thread_id: 77 })?.chat, { id: String(team.id), kind: 'group' })
})

void t.test('content other than text is named', async (t) => {
	const cases: [Fields, string][] = [
		[{ photo: [{}] }, 'a photo'],
		[{ voice: {} }, 'a voice message'],
		[{ animation: {}, document: {} }, 'an animation'],
		[{ venue: {}, location: {} }, 'a place'],
		[{ document: {} }, 'a file'],
		[{ sticker: { emoji: '👍' } }, 'a sticker'],
		[{ dice: { value: 3 } }, 'a dice'],
	]
	for (const [fields, attachment] of cases) t.match(incoming(fields), { text: '', attachment })
	t.match(incoming({ photo: [{}], caption: 'look' }), { text: 'look', attachment: 'a photo' })
})

void t.test('a forwarded rich message becomes text', async (t) => {
	const blocks = [
		{ type: 'heading', text: 'Title', size: 1 },
		{ type: 'paragraph', text: ['a ', { type: 'bold', text: 'b' }, ' c'] },
		{ type: 'list', items: [{ label: '1.', blocks: [{ type: 'paragraph', text: 'one' }] }] },
		{ type: 'divider' },
	]
	t.equal(incoming({ rich_message: { blocks } })?.text, 'Title\na b c\none')
	let deep: unknown = 'x'
	for (let n = 0; n < 10_000; n++) deep = { type: 'bold', text: deep }
	t.equal(incoming({ rich_message: { blocks: [{ type: 'paragraph', text: deep }] }, photo: [{}] })?.text, '')
})

void t.test('other updates are ignored', async (t) => {
	const cases: Record<string, Fields> = {
		'another bot': { text: 'x', from: { ...ada, is_bot: true } },
		'a channel': { text: 'x', chat: { id: -1_001, type: 'channel', title: 'News' } },
		'direct messages of a channel': { text: 'x', chat: { ...team, is_direct_messages: true } },
		'a post of the linked channel': {
			text: 'x',
			chat: team,
			sender_chat: { id: -1_002, type: 'channel' },
			is_automatic_forward: true,
		},
		'a new member': { chat: team, new_chat_members: [ada] },
		'a group that moved': { chat: team, migrate_to_chat_id: -1_009 },
		'an ephemeral message': { text: 'x', chat: team, message_id: 0, ephemeral_message_id: 3 },
		'a business account': { text: 'x', business_connection_id: 'b' },
		'a guest': { text: 'x', guest_query_id: 'g' },
	}
	for (const [what, fields] of Object.entries(cases)) t.equal(incoming(fields), undefined, what)
	const edited = { update_id: 9, edited_message: { message_id: 5, date: 1, chat: inPrivate, from: ada, text: 'x' } }
	t.equal(incomingOf(edited as unknown as Update, me), undefined, 'an edited message')
})

void t.test('a sender that posts as a group or channel is identified by its id', async (t) => {
	const from = { id: 1_087_968_824, is_bot: true, first_name: 'Group' }
	t.strictSame(inGroup('x', { from, sender_chat: team })?.sender, { id: String(team.id), name: 'Team' })
})

void t.test('the button that stops an answer becomes /stop', async (t) => {
	const stopped_message_generation = { chat: inPrivate, message_thread_id: 3, draft_id: 8 }
	t.strictSame(incomingOf({ update_id: 9, stopped_message_generation } as unknown as Update, me), {
		id: 'stop-9',
		chat: { id: '42', kind: 'private', thread_id: '3' },
		sender: { id: '42', name: 'Ada' },
		text: '/stop',
		addressed: true,
		cursor: '9',
	})
})
