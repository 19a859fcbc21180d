/** Incoming updates of Telegram, over HTTP: none is confirmed before it is accepted. */
import t from 'tap'
import { GrammyError } from 'grammy'
import { openFeed } from '../../../plugins/telegram/feed.ts'
import { startTelegram } from '../../support/telegram.ts'
import type { TelegramChat, TestTelegram } from '../../support/telegram.ts'
import { eventually } from '../../support/wait.ts'
import { connect } from './connected.ts'

/** Waits until no update is pending at the server. */
const confirmed = (telegram: TestTelegram) => eventually(() => telegram.pending().length === 0)

void t.test('updates are confirmed only after all of them are accepted', async (t) => {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	const ada = telegram.person(42, 'Ada')
	const gate = Promise.withResolvers<void>()
	for (const text of ['one', 'two', 'three']) telegram.say(ada, text)
	const bot = await connect(t, telegram, { receive: ({ text }) => (text === 'three' ? gate.promise : undefined) })
	await bot.receives(2)
	t.equal(telegram.pending().length, 3)
	t.equal(telegram.calls.filter(({ method }) => method === 'getUpdates').length, 1, 'no further updates are requested')
	gate.resolve()
	await bot.receives(3)
	await confirmed(telegram)
	t.strictSame(
		bot.received.map(({ text }) => text),
		['one', 'two', 'three'],
	)
	const [first, second] = telegram.calls.filter(({ method }) => method === 'getUpdates')
	t.strictSame(first?.payload, {
		limit: 50,
		timeout: 30,
		allowed_updates: ['message', 'stopped_message_generation'],
	})
	t.equal(second?.payload.offset, Number(bot.received[2]?.cursor) + 1)
})

void t.test('the feed continues after the cursor, in the order of the updates', async (t) => {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	const ada = telegram.person(42, 'Ada')
	const accepted = telegram.say(ada, 'accepted before')
	const [second, first] = [telegram.say(ada, 'a'), telegram.say(ada, 'b')].map(({ message }) => ({ message }))
	for (const update of telegram.pending().slice(1)) telegram.drop(update)
	telegram.push({ update_id: accepted.update_id + 7, ...second })
	telegram.push({ update_id: accepted.update_id + 3, ...first })
	const bot = await connect(t, telegram, { cursor: String(accepted.update_id) })
	await bot.receives(2)
	t.strictSame(
		bot.received.map(({ text, cursor }) => [text, cursor]),
		[
			['b', String(accepted.update_id + 3)],
			['a', String(accepted.update_id + 7)],
		],
	)
	await confirmed(telegram)
})

void t.test('an album is one message, even if its parts arrive one after another', async (t) => {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	const [ada, team] = [telegram.person(42, 'Ada'), telegram.group(-1_001_111_111_114, 'Team')]
	const photo = (chat: TelegramChat, album: string, n: number, caption?: string): void =>
		void telegram.say(chat, '', {
			text: undefined,
			photo: [{ file_id: `${album} ${n}`, file_size: 1 }],
			media_group_id: album,
			...(album === 'third' && {
				reply_to_message: { message_id: 1, from: { id: 42, first_name: 'Ada' }, text: 'which?' },
			}),
			...(caption !== undefined && {
				caption,
				caption_entities: [{ type: 'mention', offset: 0, length: caption.indexOf(' ') }],
			}),
		})
	for (const n of [1, 2, 3]) photo(team, 'first', n, n === 2 ? '@gate_test_bot compare these' : undefined)
	photo(team, 'second', 1)
	telegram.say(ada, 'in between')
	for (const n of [1, 2, 3, 4]) photo(ada, 'third', n)
	const polled = telegram.called(({ method }) => method === 'getUpdates')
	const bot = await connect(t, telegram)
	await polled
	for (const n of [5, 6, 7, 8, 9, 10]) photo(ada, 'third', n)
	await bot.receives(4)
	await confirmed(telegram)
	t.strictSame(
		bot.received.map(({ text, addressed, attachments = [], quoted }) => [
			text,
			addressed,
			attachments.length,
			quoted?.text,
		]),
		[
			['compare these', true, 3, undefined],
			['', false, 1, undefined],
			['in between', true, 0, undefined],
			['', true, 10, 'which?'],
		],
	)
	t.strictSame(
		bot.received[3]?.attachments?.map(({ ref }) => ref.split(' ')[1]),
		Array.from({ length: 10 }, (_, n) => String(n + 1)),
	)
})

void t.test('an update that is not accepted remains pending at Telegram', async (t) => {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	const ada = telegram.person(42, 'Ada')
	telegram.say(ada, 'one')
	telegram.say(ada, 'two')
	const refuse = ({ text }: { text: string }): void => {
		if (text === 'two') throw new Error('not now')
	}
	const bot = await connect(t, telegram, { receive: refuse })
	await bot.reports(/not now/)
	await bot.close()
	t.equal(telegram.pending().length, 2)
	t.match(bot.lost, [{ message: 'not now' }])
	const next = await connect(t, telegram, { cursor: bot.received[0]?.cursor ?? '' })
	await next.receives(1)
	t.equal(next.received[0]?.text, 'two')
})

void t.test('an unreadable update does not block others', async (t) => {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	telegram.push({ message: { message_id: 3, chat: null } })
	telegram.push({ message: { message_id: 3, chat: { id: 42, type: 'private' }, text: 'of nobody' } })
	telegram.say(telegram.person(42, 'Ada'), 'hi')
	const bot = await connect(t, telegram)
	await bot.receives(1)
	t.equal(bot.received[0]?.text, 'hi')
	await confirmed(telegram)
	t.strictSame(bot.lost, [])
})

void t.test('pauses grow after answers without new updates; a new update arrives at once', async (t) => {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	const { link, statuses, lost, close } = await connect(t, telegram)
	await close()
	const ending = new AbortController()
	const old = [{ update_id: 7 }]
	const answers: unknown[] = [old, [{ update_id: 3 }, ...old], [null, {}, { update_id: '9' }], old]
	answers.push([{ update_id: 8 }], null, {}, [{ update_id: 9 }])
	const polled: number[] = []
	const offsets: unknown[] = []
	const taken: number[] = []
	const done = Promise.withResolvers<void>()
	const call = {
		async getUpdates({ offset }: { offset?: number }) {
			// Before the turn in which the pause begins: its timer counts from the begin of that turn.
			polled.push(performance.now())
			offsets.push(offset)
			await new Promise((resolve) => setImmediate(resolve))
			return polled.length <= answers.length ? answers[polled.length - 1] : []
		},
	}
	const feed = await openFeed({ call } as never, { ...link, signal: ending.signal }, async (updates) => {
		for (const { update_id } of updates) {
			taken.push(update_id)
			if (update_id === 9) done.resolve()
		}
	})
	await done.promise
	ending.abort()
	await feed[Symbol.asyncDispose]()
	t.strictSame(taken, [7, 3, 7, 7, 8, 9])
	t.strictSame(offsets.slice(0, 6), [undefined, 8, 8, 8, 8, 9])
	const pauses = polled.map((time, n) => time - (polled[n - 1] ?? time))
	for (const [n, least] of [99, 199, 399].entries())
		t.ok((pauses[n + 2] ?? 0) >= least, `pause ${n + 1} is ${pauses[n + 2]} ms`)
	t.match(statuses, [/^reconnecting: .*the Bot API does not define/, /^connected/], 'an invalid answer is a failure')
	t.strictSame(lost, [])
})

void t.test('a lost poll is retried, and reported if the retry fails too', async (t) => {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	const ada = telegram.person(42, 'Ada')
	const bot = await connect(t, telegram)
	await telegram.called(({ method }) => method === 'getUpdates')
	telegram.cut()
	telegram.say(ada, 'one')
	await bot.receives(1)
	t.strictSame(bot.statuses, [], 'a single lost poll is not reported')
	telegram.fault('getUpdates', 'cut before', { error_code: 502, description: 'Bad Gateway' }, 'bad gateway')
	telegram.cut()
	telegram.say(ada, 'two')
	await bot.receives(2)
	await bot.reports(/^connected/)
	t.match(bot.statuses.at(-1), /^connected/)
	t.match(bot.statuses[0], /^reconnecting: Telegram (failed|did not answer)/)
	t.strictSame(bot.lost, [])
})

void t.test('polling continues after another process has polled, which is reported', async (t) => {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	const ada = telegram.person(42, 'Ada')
	const bot = await connect(t, telegram)
	await telegram.called(({ method }) => method === 'getUpdates')
	telegram.conflict()
	await bot.reports(/^reconnecting: another process polls this bot/)
	telegram.say(ada, 'still here')
	await bot.receives(1)
	await bot.reports(/^connected/)
})

void t.test('a webhook is removed, and its pending updates are received', async (t) => {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	telegram.setWebhook('https://old.example/hook')
	telegram.say(telegram.person(42, 'Ada'), 'pending')
	const bot = await connect(t, telegram)
	await bot.receives(1)
	const removal = telegram.calls.find(({ method }) => method === 'deleteWebhook')
	t.strictSame(removal?.payload, { drop_pending_updates: false })
})

void t.test('a feed that ends does not wait for the removal of a webhook', async (t) => {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	const { link, lost, close } = await connect(t, telegram)
	await close()
	const ending = new AbortController()
	const removing = Promise.withResolvers<AbortSignal | undefined>()
	const conflict = { error_code: 409, description: 'Conflict: a webhook is active' }
	const call = {
		async getUpdates() {
			throw new GrammyError('no updates', { ok: false, ...conflict }, 'getUpdates', {})
		},
		deleteWebhook: (_options: object, signal?: AbortSignal) => {
			removing.resolve(signal)
			return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new Error('aborted'))))
		},
	}
	const feed = await openFeed({ call } as never, { ...link, signal: ending.signal }, async () => {})
	if (!t.ok(await removing.promise, 'the request can be aborted')) return
	ending.abort()
	await feed[Symbol.asyncDispose]()
	t.strictSame(lost, [])
})

void t.test('a token that is revoked during a poll ends the connection', async (t) => {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	const bot = await connect(t, telegram)
	await telegram.called(({ method }) => method === 'getUpdates')
	telegram.fault('getUpdates', { error_code: 401, description: 'Unauthorized' })
	telegram.cut()
	await bot.reports(/does not accept the token/)
	t.match(bot.lost, [{ code: 'refused' }])
})

void t.test('the menu of commands is set; a failure to set it is ignored', async (t) => {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	telegram.fault('setMyCommands', {
		error_code: 429,
		description: 'Too Many Requests: retry after 60',
		parameters: { retry_after: 60 },
	})
	const bot = await connect(t, telegram)
	const { payload } = await telegram.called(({ method }) => method === 'setMyCommands')
	t.strictSame(
		payload.commands.map(({ command }: { command: string }) => command),
		['start', 'new', 'stop', 'model', 'usage', 'context', 'compact', 'whoami', 'help'],
	)
	telegram.say(telegram.person(42, 'Ada'), 'hi')
	await bot.receives(1)
})

const CUTS = Number(process.env.CHANNEL_CUTS ?? 10)

void t.test(`no message is lost in ${CUTS} cuts`, async (t) => {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	const ada = telegram.person(42, 'Ada')
	const bot = await connect(t, telegram)
	const said: string[] = []
	for (let cut = 0; cut < CUTS; cut++) {
		said.push(`message ${cut}`)
		if (cut % 3 === 0) telegram.fault('getUpdates', 'cut after')
		telegram.say(ada, `message ${cut}`)
		telegram.cut()
		await bot.receives(said.length)
	}
	await confirmed(telegram)
	t.strictSame([...new Set(bot.received.map(({ text }) => text))], said)
	t.strictSame(bot.lost, [])
})
