/** Outgoing messages of Telegram, over HTTP. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import t from 'tap'
import { failure } from '../../support/channel-failure.ts'
import { startTelegram } from '../../support/telegram.ts'
import type { Fault } from '../../support/telegram.ts'
import { eventually } from '../../support/wait.ts'
import { connect, outgoing } from './connected.ts'

const telegram = await startTelegram()
t.teardown(() => telegram.stop())
const ada = telegram.person(42, 'Ada')
const group = telegram.group(-1_001_234_567_890, 'Team')

void t.test('rich Markdown, HTML and plain text are sent as such, without previews of links', async (t) => {
	const bot = await connect(t, telegram)
	t.equal(bot.name, '@gate_test_bot')
	const rich = await bot.send(outgoing(ada, '# A\n\n**b** <img src="http://x/">', { markup: 'markdown' }))
	const html = await bot.send(outgoing(ada, '<b>a</b> &lt; b', { markup: 'html' }))
	const plain = await bot.send(outgoing(ada, '<b> & *c*'))
	t.strictSame(
		telegram.messages(ada).map(({ message_id, text, markup }) => [String(message_id), text, markup]),
		[
			[rich.id, '# A\n\n**b** &lt;img src="http://x/">', 'markdown'],
			[html.id, 'a < b', 'html'],
			[plain.id, '<b> & *c*', 'plain'],
		],
	)
	const sent = telegram.calls.filter(({ method }) => method === 'sendMessage')
	t.ok(sent.every(({ payload }) => payload.link_preview_options.is_disabled === true))
})

void t.test('messages are sent as replies and to topics', async (t) => {
	const bot = await connect(t, telegram)
	const answered = telegram.say(group, 'x').message.message_id
	const topic = { id: String(group.id), kind: 'group' as const, thread_id: '77' }
	await bot.send(outgoing(group, 'r1', { reply_to: String(answered), chat: topic }))
	await bot.send(outgoing(group, 'r2', { reply_to: '99999', markup: 'markdown' }))
	await bot.send(outgoing(group, 'r3', { reply_to: 'stop-12' }))
	const [first, gone, none] = telegram.messages(group)
	t.match(first, { reply_to: answered, thread_id: 77 })
	t.equal(gone?.text, 'r2', 'an answer to a deleted message is sent')
	t.equal(none?.reply_to, undefined)
	await bot.typing?.(topic)
	t.match(telegram.calls.at(-1), {
		method: 'sendChatAction',
		payload: { chat_id: group.id, message_thread_id: 77, action: 'typing' },
	})
})

void t.test('messages are edited; an edit without a change is no error', async (t) => {
	const bot = await connect(t, telegram)
	for (const markup of ['markdown', 'html', 'plain'] as const) {
		const message = outgoing(group, `first ${markup}`, { markup })
		const { id } = await bot.send(message)
		await bot.edit?.(id, { ...message, text: 'second' })
		await bot.edit?.(id, { ...message, text: 'second' })
		t.strictSame(telegram.messages(group).at(-1)?.texts, [`first ${markup}`, 'second'])
	}
	const others = String(telegram.say(group, 'of a person').message.message_id)
	for (const markup of ['markdown', 'html', 'plain'] as const)
		for (const id of ['99999', others])
			t.match(await failure(bot.edit!(id, outgoing(group, 'x', { markup }))), { code: 'refused' })
})

void t.test('drafts keep one id that is not 0, and offer to stop', async (t) => {
	const bot = await connect(t, telegram)
	const message = outgoing(ada, 'a', { markup: 'markdown' })
	await bot.draft?.(message)
	await bot.draft?.({ ...message, text: 'a b' })
	await bot.draft?.({ ...message, text: '<b>a b</b>', markup: 'html' })
	await bot.draft?.(outgoing(ada, 'other'))
	t.strictSame(
		telegram.drafts.map(({ text }) => text),
		['a', 'a b', 'a b', 'other'],
	)
	const ids = new Set(telegram.drafts.map(({ draft_id }) => draft_id))
	t.equal(ids.size, 2)
	t.ok([...ids].every((id) => id > 0 && id < 2 ** 31 + 1))
	const calls = telegram.calls.filter(({ method }) => method.endsWith('Draft'))
	t.ok(calls.every(({ payload }) => payload.can_stop === true))
})

void t.test('methods that a server does not implement are tried once', async (t) => {
	const old = await startTelegram({
		without: ['sendRichMessage', 'sendRichMessageDraft', 'sendMessageDraft', 'sendChatAction'],
	})
	t.teardown(() => old.stop())
	const eve = old.person(5, 'Eve')
	const bot = await connect(t, old)
	for (let n = 0; n < 3; n++) {
		t.match(await failure(bot.send(outgoing(eve, 'a', { markup: 'markdown' }))), { code: 'format' })
		t.match(await failure(bot.edit!('1', outgoing(eve, 'a', { markup: 'markdown' }))), { code: 'format' })
		t.match(await failure(bot.draft!(outgoing(eve, 'a', { markup: 'markdown' }))), { code: 'format' })
		t.match(await failure(bot.draft!(outgoing(eve, 'a', { markup: 'html' }))), { code: 'refused' })
		await bot.typing?.({ id: '5' })
	}
	await bot.send(outgoing(eve, '<b>a</b>', { markup: 'html' }))
	t.equal(old.messages(eve).length, 1)
	t.equal(old.asked(), 4, 'each method once')
})

void t.test('each error states whether the message was sent', async (t) => {
	const bot = await connect(t, telegram)
	const cases: [Fault | undefined, 'markdown' | 'html' | 'plain', object, RegExp][] = [
		[{ error_code: 400, description: "Bad Request: can't parse entities: x" }, 'html', { code: 'format' }, /html/],
		[{ error_code: 400, description: 'Bad Request: too many blocks' }, 'markdown', { code: 'format' }, /blocks/],
		[{ error_code: 400, description: 'Bad Request: something' }, 'plain', { code: 'refused' }, /something/],
		[{ error_code: 400, description: 'Bad Request: chat not found' }, 'html', { code: 'refused' }, /chat not found/],
		[
			{
				error_code: 400,
				description: 'Bad Request: group chat was upgraded',
				parameters: { migrate_to_chat_id: -1009 },
			},
			'html',
			{ code: 'refused' },
			/-1009/,
		],
		[
			{ error_code: 403, description: 'Forbidden: bot was blocked by the user' },
			'html',
			{ code: 'refused' },
			/blocked/,
		],
		[{ error_code: 500, description: 'Internal Server Error' }, 'html', { code: undefined }, /failed: 500/],
		['bad gateway', 'html', { code: undefined }, /did not answer/],
		['cut before', 'html', { code: undefined }, /did not answer/],
		['cut after', 'html', { code: undefined }, /did not answer/],
		[
			{ error_code: 429, description: 'Too Many Requests: retry after 17', parameters: { retry_after: 17 } },
			'html',
			{ code: 'limited', retry_after_ms: 17_000 },
			/retry after 17/,
		],
	]
	for (const [fault, markup, expected, text] of cases) {
		if (fault) telegram.fault(markup === 'markdown' ? 'sendRichMessage' : 'sendMessage', fault)
		const error = await failure(bot.send(outgoing(ada, 'x', { markup })))
		t.match({ code: error.code, retry_after_ms: error.retry_after_ms }, expected, JSON.stringify(fault))
		t.match(error.message, text)
		t.notOk(inspect(error, { depth: 9 }).includes(telegram.token), 'the error does not contain the token')
	}
	t.match(await failure(bot.send(outgoing({ ...ada, id: 4711 }, 'x'))), { code: 'refused' })
	t.match(await failure(bot.send({ ...outgoing(ada, 'x'), chat: { id: '../x', kind: 'private' } })), {
		code: 'refused',
	})
	t.strictSame(bot.lost, [])
})

void t.test('a short 429 is waited out; a message whose response was lost is not sent again', async (t) => {
	const bot = await connect(t, telegram)
	const eve = telegram.person(43, 'Eve')
	telegram.fault('sendMessage', {
		error_code: 429,
		description: 'Too Many Requests: retry after 0',
		parameters: { retry_after: 0 },
	})
	await bot.send(outgoing(eve, 'late'))
	telegram.fault('sendMessage', 'cut after')
	await failure(bot.send(outgoing(eve, 'cut')))
	t.strictSame(
		telegram.messages(eve).map(({ text }) => text),
		['late', 'cut'],
	)
})

void t.test('a revoked token ends the connection', async (t) => {
	const bot = await connect(t, telegram)
	telegram.fault('sendMessage', { error_code: 401, description: 'Unauthorized' })
	t.match(await failure(bot.send(outgoing(ada, 'x'))), { code: 'refused' })
	t.match(bot.lost, [{ code: 'refused' }])
})

void t.test('an unreachable server means that nothing was sent; the error does not contain the token', async (t) => {
	const own = await startTelegram()
	const eve = own.person(5, 'Eve')
	const bot = await connect(t, own)
	await own.stop()
	const error = await failure(bot.send(outgoing(eve, 'x')))
	t.match(error, { code: 'failed' })
	t.notOk(inspect(error, { depth: 9 }).includes(own.token))
	t.match(await failure(connect(t, own)), { code: 'failed', message: /nothing answers/ })
})

void t.test('invalid tokens are refused', async (t) => {
	for (const [token, text] of [
		['1:wrong', /does not accept the token/],
		['1/../2', /not a bot token/],
		['x y', /not a bot token/],
		['', /not a bot token/],
	] as const) {
		const error = await failure(connect(t, telegram, { token }))
		t.match(error, { code: 'refused', message: text })
		if (token !== '') t.notOk(error.message.includes(token))
	}
	telegram.fault('getMe', { error_code: 404, description: 'Not Found' })
	t.match(await failure(connect(t, telegram)), { code: 'refused' })
})

void t.test('an error hides the token of an address that the server repeats', async (t) => {
	const server = createServer((socket) => {
		socket.once('data', (data) => {
			const line = String(data).split('\r\n')[0]
			const body = JSON.stringify({ ok: false, error_code: 400, description: `no: ${line}\n\u001b[31m` })
			socket.end(`HTTP/1.1 400 Bad\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
		})
	})
	server.listen(0, '127.0.0.1')
	await once(server, 'listening')
	t.teardown(() => server.close())
	const api_root = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
	const error = await failure(connect(t, telegram, { api_root }))
	t.match(error.message, /POST \/bot…\/getMe/)
	t.notMatch(error.message, /\p{Cc}/u)
})

void t.test('close ends every connection', async (t) => {
	const own = await startTelegram()
	t.teardown(() => own.stop())
	const bot = await connect(t, own)
	await own.called(({ method }) => method === 'getUpdates')
	await bot.close()
	t.ok(await eventually(() => own.open() === 0))
	t.match(await failure(bot.send(outgoing(own.person(1, 'A'), 'x'))), Error)
	t.strictSame(bot.lost, [])
	t.strictSame(bot.statuses, [])
})
