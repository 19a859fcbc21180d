/** A message is found after the response to its request was lost, and no other message is changed. */
import t from 'tap'
import type { Test } from 'tap'
import type { OutgoingMessage } from '../../../plugins/channels/adapter.ts'
import { startTelegram } from '../../support/telegram.ts'
import type { Fault } from '../../support/telegram.ts'
import { connect, outgoing } from './connected.ts'
import type { Connected } from './connected.ts'

const telegram = await startTelegram()
t.teardown(() => telegram.stop())
let people = 100

/** Sends a message whose response is lost, and searches for it with the earlier mark, as the gateway does. Returns the id found. */
async function sendAndFind(bot: Connected, message: OutgoingMessage): Promise<string | undefined> {
	const mark = bot.mark?.(message.chat)
	await bot.send(message).then(
		() => Promise.reject(new Error('the response arrived')),
		() => {},
	)
	return (await bot.find?.(message, mark))?.id
}

function faultOf({ markup }: OutgoingMessage): string {
	return markup === 'markdown' ? 'sendRichMessage' : 'sendMessage'
}

/** A bot that has received one message, and its chat. */
async function connectChat(t: Test) {
	const chat = telegram.person(people++, 'Ada')
	const bot = await connect(t, telegram)
	telegram.say(chat, 'hello')
	await bot.receives(1)
	return { chat, bot }
}

void t.test('a message is found in each markup, if it was sent', async (t) => {
	const { chat, bot } = await connectChat(t)
	for (const markup of ['markdown', 'html', 'plain'] as const) {
		const message = outgoing(chat, `said in ${markup}`, { markup })
		telegram.fault(faultOf(message), 'cut after')
		const found = await sendAndFind(bot, message)
		t.equal(found, String(telegram.messages(chat).at(-1)?.message_id))
		t.strictSame(telegram.messages(chat).at(-1)?.texts, [`said in ${markup}`], 'its text is unchanged')

		const lost = outgoing(chat, `not said in ${markup}`, { markup })
		telegram.fault(faultOf(lost), 'cut before')
		t.strictSame(await sendAndFind(bot, lost), undefined)
		t.notOk(telegram.messages(chat).some(({ text }) => text.startsWith('not said')))
	}
})

void t.test('a message is found by a new connection, such as after a restart', async (t) => {
	const { chat, bot } = await connectChat(t)
	const message = outgoing(chat, 'said once')
	telegram.fault('sendMessage', 'cut after')
	const mark = bot.mark?.(message.chat)
	await bot.send(message).catch(() => {})
	await bot.close()
	const next = await connect(t, telegram)
	t.equal((await next.find?.(message, mark))?.id, String(telegram.messages(chat)[0]?.message_id))
})

void t.test('a message found with an earlier text gets its new text', async (t) => {
	const { chat, bot } = await connectChat(t)
	const message = outgoing(chat, 'in the making')
	telegram.fault('sendMessage', 'cut after')
	const mark = bot.mark?.(message.chat)
	await bot.send(message).catch(() => {})
	await bot.find?.({ ...message, text: 'the answer' }, mark)
	t.strictSame(telegram.messages(chat)[0]?.texts, ['in the making', 'the answer'])
})

void t.test('messages in between and in other chats are not changed', async (t) => {
	const { chat, bot } = await connectChat(t)
	const other = telegram.person(people++, 'Eve')
	const message = outgoing(chat, 'mine')
	const mark = bot.mark?.(message.chat)
	telegram.say(other, 'one')
	telegram.say(chat, 'two')
	await bot.receives(3)
	const notice = await bot.send(outgoing(chat, 'a notice'))
	await bot.send(outgoing(other, 'for Eve'))
	telegram.fault('sendMessage', 'cut after')
	await bot.send(message).catch(() => {})
	telegram.say(other, 'three')
	const found = await bot.find?.(message, mark)
	const mine = telegram.messages(chat).find(({ text }) => text === 'mine')
	t.equal(found?.id, String(mine?.message_id))
	t.not(found?.id, notice.id)
	t.strictSame(
		[...telegram.messages(chat), ...telegram.messages(other)].map(({ texts }) => texts),
		[['a notice'], ['mine'], ['for Eve']],
	)
})

void t.test(
	'a supergroup has separate ids; without a mark, the search begins after the answered message',
	async (t) => {
		const { bot } = await connectChat(t)
		const group = telegram.group(-1_009_000_000_001, 'Team')
		for (let n = 0; n < 40; n++) telegram.say(group, '@gate_test_bot hi')
		await bot.receives(41)
		const message = outgoing(group, 'in the group')
		t.equal(bot.mark?.(message.chat), '40')
		telegram.fault('sendMessage', 'cut after')
		t.equal(await sendAndFind(bot, message), '41')

		const fresh = await connect(t, telegram)
		t.equal((await fresh.find?.({ ...message, reply_to: '40' }, undefined))?.id, '41')
		t.equal(await fresh.find?.(message, undefined), undefined, 'without a mark there is no search')
	},
)

void t.test('the preceding part of an answer is not changed', async (t) => {
	const { chat, bot } = await connectChat(t)
	const first = await bot.send(outgoing(chat, 'part 1'))
	await bot.close()
	const known = [{ id: String(chat.id), last_id: String(Number(first.id) - 1), bound_at: '2026-01-01T00:00:00.000Z' }]
	const next = await connect(t, telegram, { chats: known })
	const message = outgoing(chat, 'part 2', { after: first.id })
	telegram.fault('sendMessage', 'cut before')
	t.equal(await sendAndFind(next, message), undefined)
	telegram.fault('sendMessage', 'cut after')
	await sendAndFind(next, message)
	t.strictSame(
		telegram.messages(chat).map(({ texts }) => texts),
		[['part 1'], ['part 2']],
	)
})

void t.test('marks continue from the chats that the gateway knows', async (t) => {
	const chats = [
		{ id: '5', last_id: '900', bound_at: '2026-01-01T00:00:00.000Z' },
		{ id: '-1001000000000', last_id: 'stop-4', bound_at: '2026-01-01T00:00:00.000Z' },
		{ id: '6', last_id: '800', bound_at: '2026-01-01T00:00:00.000Z' },
	]
	const bot = await connect(t, telegram, { chats })
	t.equal(bot.mark?.({ id: '7' }), '900', 'private chats share a counter')
	t.equal(bot.mark?.({ id: '-1001000000000' }), undefined)
})

const notFound: Fault = { error_code: 400, description: 'Bad Request: message to edit not found' }

void t.test('the search is bounded, resumes after a rate limit, and reports failures', async (t) => {
	const { chat, bot } = await connectChat(t)
	const edits = () => telegram.calls.filter(({ method }) => method === 'editMessageText').length
	const before = edits()
	const mark = bot.mark?.({ id: String(chat.id) })
	t.equal(await bot.find?.(outgoing(chat, 'never said'), mark), undefined)
	t.equal(edits() - before, 30)
	const tooMany: Fault = {
		error_code: 429,
		description: 'Too Many Requests: retry after 9',
		parameters: { retry_after: 9 },
	}
	const never = outgoing(chat, 'x')
	telegram.fault('editMessageText', ...Array.from({ length: 20 }, (): Fault => notFound), tooMany)
	await t.rejects(bot.find!(never, mark), { code: 'limited', retry_after_ms: 9000 })
	t.equal(await bot.find?.(never, mark), undefined)
	t.equal(edits() - before, 61, 'an interrupted search is resumed')
	telegram.fault('editMessageText', 'cut before')
	await t.rejects(bot.find!(never, mark), { message: /did not answer/ })
})
