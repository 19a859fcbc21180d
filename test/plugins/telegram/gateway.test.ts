/** Telegram end to end: people on a Bot API server, agents behind the gateway. */
import { rmSync } from 'node:fs'
import t from 'tap'
import type { Test } from 'tap'
import { TelegramServer } from 'telegram-test-api/lib/telegramServer.js'
import { makeHome, startGateway } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { ogg, pdf, png } from '../../support/files.ts'
import { addChannel, waitForConnection } from '../../support/loop.ts'
import { freePort } from '../../support/free-ports.ts'
import { allAnswered, startTelegram } from '../../support/telegram.ts'
import type { SentMessage, TelegramChat, TestTelegram } from '../../support/telegram.ts'
import { eventually } from '../../support/wait.ts'

t.jobs = 6
const held = await startManualModel()
const gateway = await startGateway({
	config: `default_provider: offline\nproviders:\n  offline:\n    kind: offline\n  held:\n    kind: openai\n    base_url: ${held.url}\n    api_key: sk-test\n    model: held\n`,
})
t.teardown(async () => {
	await gateway.stop()
	await held.stop()
})
await gateway.request('POST', '/v1/agents', { body: { name: 'echo' } })
await gateway.request('POST', '/v1/agents', { body: { name: 'held', config: { provider: 'held' } } })

interface Bot {
	telegram: TestTelegram
	id: string
	/** Sends a message of a person, and returns the bot's next message in the chat. `fields`: further fields of the message. */
	ask(chat: TelegramChat, text: string, fields?: Record<string, unknown>): Promise<SentMessage>
	bind(chat: TelegramChat, agent?: string): Promise<void>
}

async function connect(t: Test, config: Record<string, unknown> = {}): Promise<Bot> {
	const telegram = await startTelegram()
	const id = await addChannel(gateway, telegram.token, {
		type: 'telegram',
		config: { api_root: telegram.url, ...config },
	})
	t.teardown(async () => {
		await gateway.request('DELETE', `/v1/channels/${id}`)
		await telegram.stop()
	})
	await waitForConnection(gateway, id, 'connected')
	const bind = async (chat: TelegramChat, agent = 'echo'): Promise<void> => {
		const before = telegram.messages(chat).length
		const { status, body } = await gateway.request('POST', '/v1/channels/pair', {
			body: { agent_id: agent, channel_id: id, external_chat_id: String(chat.id) },
		})
		if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`)
		await eventually(() => telegram.messages(chat).length > before)
	}
	return {
		telegram,
		id,
		bind,
		async ask(chat, text, fields) {
			const before = telegram.messages(chat).length
			telegram.say(chat, text, fields)
			await eventually(() => telegram.messages(chat).length > before)
			return telegram.messages(chat)[before] as SentMessage
		},
	}
}

async function runs(agent: string): Promise<Answer[]> {
	return (await gateway.request('GET', `/v1/agents/${agent}/runs?limit=500`)).body
}

void t.test('a chat is paired with /start, and its messages and commands are answered', async (t) => {
	const { telegram, id, ask } = await connect(t, { agent_id: 'echo' })
	const ada = telegram.person(42, 'Ada')
	const channel = (await gateway.request('GET', `/v1/channels/${id}`)).body
	t.match(channel, { type: 'chat_a', connection: 'connected', bot: '@gate_test_bot', last_error: null })

	const hint = await ask(ada, 'hello?')
	t.match(hint.text, /no agent yet/)
	const code = /\b[0-9A-HJKMNP-TV-Z]{8}\b/.exec((await ask(ada, '/start')).text)?.[0]
	const paired = await gateway.request('POST', '/v1/channels/pair', { body: { pairing_code: code } })
	t.equal(paired.status, 201)
	t.match(paired.body, { agent_id: 'echo', channel_id: id, external_chat_id: '42' })
	await telegram.waitFor(({ text }) => text.includes('connected to the agent'))

	const answer = await ask(ada, 'Say **this**')
	t.match(answer, { text: /Say \*\*this\*\*/, markup: 'markdown' })
	t.equal(answer.reply_to, undefined, 'a private chat quotes nothing')
	t.match((await ask(ada, '/whoami')).text, /42.*echo/)
	t.match((await ask(ada, '/new')).text, /new conversation/)
	t.match((await ask(ada, '/stop')).text, /nothing to stop/)
	const run = (await runs('echo')).find(({ prompt }) => prompt === 'Say **this**')
	t.match(run, { prompt: 'Say **this**', trigger: 'chat_a', status: 'completed' })
})

void t.test('in a group the bot answers when addressed, in the same topic', async (t) => {
	const { telegram, bind, ask } = await connect(t)
	const team = telegram.group(-1_001_111_111_111, 'Team')
	await bind(team)
	telegram.say(team, 'not for the bot')
	/** Waits until the answer contains `words`: in a group an answer grows. */
	const answer = async (words: RegExp, ...asked: Parameters<typeof ask>): Promise<SentMessage> => {
		const { message_id } = await ask(...asked)
		const now = (): SentMessage | undefined => telegram.messages(team).find((one) => one.message_id === message_id)
		return (await eventually(now, (message) => words.test(message?.text ?? ''))) as SentMessage
	}
	const first = await answer(/one/, team, '@gate_test_bot one', { message_thread_id: 5, is_topic_message: true })
	t.equal(first.thread_id, 5)
	t.equal(first.reply_to, first.message_id - 1)
	const reply = { message_id: first.message_id, from: { id: telegram.bot.id, is_bot: true }, text: 'number one' }
	t.ok(await answer(/two/, team, 'two', { reply_to_message: reply }))
	t.ok(
		(await runs('echo')).some(({ prompt }) =>
			prompt.endsWith('[A reply to your message, quoted here: "number one"]\n\ntwo'),
		),
	)
	t.match((await ask(team, '/stop@gate_test_bot')).text, /nothing to stop/)
	t.notOk(telegram.messages(team).some(({ text }) => text.includes('not for the bot')))
})

void t.test('a question in a group states which answers the bot sees', async (t) => {
	const { telegram, bind, id } = await connect(t)
	const [ada, team] = [telegram.person(44, 'Ada'), telegram.group(-1_001_111_111_113, 'Team')]
	await bind(ada, 'held')
	await bind(team, 'held')
	let asked = 0
	/** Makes the agent ask, and returns the question as the chat sees it. */
	const question = async (chat: TelegramChat): Promise<SentMessage> => {
		const [topic, before] = [`topic ${++asked} of questions`, telegram.messages(chat).length]
		telegram.say(chat, `@gate_test_bot ${topic}`)
		const call = await eventually(() => held.calls.find(({ prompt }) => prompt.includes(topic)))
		call?.callTool('ask', JSON.stringify({ question: 'Tea?' }))
		const seen = (): SentMessage | undefined =>
			telegram
				.messages(chat)
				.slice(before)
				.find(({ text }) => text.includes('Tea?'))
		return (await eventually(seen, (found) => found !== undefined)) as SentMessage
	}
	t.equal((await question(ada)).text, 'Tea?')
	const inGroup = await question(team)
	t.match(inGroup.text, /^Tea\?\n\nIn this group I only see an answer that mentions me or is a reply/)
	telegram.say(team, 'Yes.')
	const reply = { message_id: inGroup.message_id, from: { id: telegram.bot.id, is_bot: true } }
	telegram.say(team, 'No.', { reply_to_message: reply })
	const next = await eventually(() => held.calls.find(({ body }) => JSON.stringify(body).includes('No.')))
	next?.answer('No tea.')
	await telegram.waitFor(({ text }) => text.includes('No tea.'))
	await gateway.request('PATCH', `/v1/channels/${id}`, { body: { config: { answer: 'all' } } })
	await waitForConnection(gateway, id, 'connected')
	t.equal((await question(team)).text, 'Tea?')
})

void t.test('an unfinished answer is a draft in a private chat, and grows in a group', async (t) => {
	const { telegram, bind } = await connect(t)
	const ada = telegram.person(43, 'Ada')
	const team = telegram.group(-1_001_111_111_112, 'Team')
	await bind(ada, 'held')
	await bind(team, 'held')
	telegram.say(ada, 'tell me')
	const inPrivate = await held.called('tell me')
	await telegram.called(({ method, payload }) => method === 'sendChatAction' && payload.chat_id === 43)
	await eventually(
		() => telegram.drafts.find(({ chat_id }) => chat_id === 43)?.text,
		(text) => text?.trim() === 'Well,',
	)
	inPrivate.answer('there it is.')
	await telegram.waitFor(({ chat, text }) => chat.id === 43 && text === 'Well, there it is.')

	telegram.say(team, '@gate_test_bot tell us')
	const inGroup = await eventually(() => held.calls.find(({ prompt }) => prompt.includes('tell us')))
	const growing = await telegram.waitFor(({ chat, text }) => chat.id === team.id && text.trim() === 'Well,')
	inGroup?.answer('here it is.')
	await eventually(() => growing.text === 'Well, here it is.')
	t.equal(telegram.messages(team).length, 2, 'the answer is one message')
})

void t.test('the button of a draft stops the run', async (t) => {
	const { telegram, bind } = await connect(t)
	const ada = telegram.person(44, 'Ada')
	await bind(ada, 'held')
	telegram.say(ada, 'think long')
	const call = await held.called('think long')
	const stopped_message_generation = { chat: ada, draft_id: 1 }
	telegram.push({ stopped_message_generation })
	await call.hungUp
	await telegram.waitFor(({ chat, text }) => chat.id === 44 && text === 'Stopped.')
	t.pass('the run is stopped, and the chat is notified')
})

const CUTS = Number(process.env.CHANNEL_CUTS ?? 10)

void t.test(`${CUTS} cuts, duplicates and updates out of order: each message is answered once`, async (t) => {
	const { telegram, bind } = await connect(t)
	const people = await Promise.all(
		Array.from({ length: 10 }, async (_, n) => {
			const person = telegram.person(50 + n, `P${n}`)
			await bind(person)
			return person
		}),
	)
	const said: string[] = []
	for (let cut = 0; cut < CUTS; cut++) {
		const person = people[cut % people.length] as TelegramChat
		const faults = ['cut after', 'cut before', 'bad gateway'] as const
		telegram.fault('sendRichMessage', faults[cut % 3] ?? 'cut after')
		if (cut % 4 === 1) telegram.fault('getUpdates', 'cut after')
		const text = `number ${cut}.`
		said.push(text)
		const { message } = telegram.say(person, text)
		const again = telegram.push({ message })
		if (cut % 5 === 2) {
			telegram.drop(again)
			telegram.push({ message: telegram.say(person, `and ${cut}.`).message })
			telegram.push(again) // after one with a higher id
			said.push(`and ${cut}.`)
		}
		telegram.cut()
		await eventually(() => telegram.pending().length === 0)
	}
	const answersTo = (text: string): SentMessage[] =>
		people.flatMap((person) => telegram.messages(person)).filter((one) => one.text.includes(text))
	await allAnswered(telegram, said, 60_000 + CUTS * 1_000)
	for (const text of said) t.equal(answersTo(text).length, 1, text)
})

void t.test('an answer from before a restart is not mistaken for the next one', async (t) => {
	const telegram = await startTelegram()
	const home = makeHome()
	let own = await startGateway({ home })
	t.teardown(async () => {
		await own.stop()
		await telegram.stop()
		rmSync(home, { recursive: true, force: true })
	})
	const ada = telegram.person(70, 'Ada')
	await own.request('POST', '/v1/agents', { body: { name: 'echo' } })
	const channel_id = await addChannel(own, telegram.token, { type: 'chat_a', config: { api_root: telegram.url } })
	await own.request('POST', '/v1/channels/pair', { body: { agent_id: 'echo', channel_id, external_chat_id: '70' } })
	telegram.say(ada, 'one.')
	telegram.say(ada, 'two.')
	await telegram.waitFor(({ text }) => text.includes('one.'))
	telegram.fault('sendRichMessage', 'cut before', 'cut before', 'cut before')
	await own.stop() // while the second answer waits for its turn
	own = await startGateway({ home })
	await telegram.waitFor(({ text }) => text.includes('two.'))
	t.ok(telegram.messages(ada).every(({ texts }) => texts.length === 1))
	t.equal(telegram.messages(ada).filter(({ text }) => text.includes('one.')).length, 1)
})

void t.test('a third-party Bot API server without rich messages and drafts works', async (t) => {
	const server = new TelegramServer({ port: await freePort(), host: '127.0.0.1' })
	await server.start()
	const token = '300400:token-for-telegram-test-api'
	const id = await addChannel(gateway, token, {
		type: 'chat_a',
		config: { api_root: server.config.apiURL, agent_id: 'echo' },
	})
	t.teardown(async () => {
		await gateway.request('DELETE', `/v1/channels/${id}`)
		await server.stop()
	})
	t.match(await waitForConnection(gateway, id, 'connected'), { bot: '@TestNameBot' })
	const client = server.getClient(token, { userId: 81, chatId: 81, timeout: 60_000 })
	const nextMessage = async () =>
		(await client.getUpdates()).result[0]?.message as { text: string; parse_mode?: string }
	await client.sendMessage(client.makeMessage('/start'))
	const { text } = await nextMessage()
	const pairing_code = /\b[0-9A-HJKMNP-TV-Z]{8}\b/.exec(text)?.[0]
	t.equal((await gateway.request('POST', '/v1/channels/pair', { body: { pairing_code } })).status, 201)
	t.match((await nextMessage()).text, /connected to the agent/)
	await client.sendMessage(client.makeMessage('1 < 2, **they** say'))
	t.match(await nextMessage(), { text: /1 &lt; 2, <b>they<\/b> say/, parse_mode: 'HTML' })
})

void t.test('a wrong token shows as an error, and the channel connects with the right one', async (t) => {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	const id = await addChannel(gateway, '100200:wrong-token', { type: 'chat_a', config: { api_root: telegram.url } })
	t.teardown(() => gateway.request('DELETE', `/v1/channels/${id}`))
	const { last_error } = await waitForConnection(gateway, id, 'error')
	t.match(last_error, /does not accept the token/)
	t.notOk(last_error.includes('wrong-token'))
	await gateway.request('POST', '/v1/vault/secrets', {
		body: { name: 'RIGHT_TOKEN', value: telegram.token, policy_label: 'channel' },
	})
	const patched = await gateway.request('PATCH', `/v1/channels/${id}`, { body: { bot_token_ref: 'RIGHT_TOKEN' } })
	t.equal(patched.status, 200)
	t.match(await waitForConnection(gateway, id, 'connected'), { bot: '@gate_test_bot', last_error: null })
})

void t.test('photos, documents and voice messages reach the agent; the prompt lists files not loaded', async (t) => {
	const { telegram, bind } = await connect(t)
	const chat = telegram.person(77, 'Mia')
	await gateway.request('POST', '/v1/agents', { body: { name: 'files', config: { provider: 'offline' } } })
	await bind(chat, 'files')
	telegram.files.set('large', png('photo')).set('doc', pdf()).set('voice', ogg())
	const newest = async (): Promise<Answer> => (await gateway.request('GET', '/v1/agents/files/runs')).body[0]
	const send = async (fields: Record<string, unknown>): Promise<Answer> => {
		const before = telegram.messages(chat).length
		telegram.say(chat, '', { text: undefined, ...fields })
		await eventually(() => telegram.messages(chat).length > before)
		return newest()
	}
	const photo = [{ file_id: 'small' }, { file_id: 'large', file_size: png('photo').length }]
	const shown = await send({ photo, caption: 'What is it?' })
	t.match(shown, { prompt: 'What is it?', attachments: [{ type: 'image', media_type: 'image/png' }] })
	const back = await fetch(`${gateway.url}/v1/agents/files/blobs/${shown.attachments[0].blob}`)
	t.ok(Buffer.from(await back.arrayBuffer()).equals(png('photo')))

	const document = { file_id: 'doc', file_name: 'terms.pdf', mime_type: 'application/pdf' }
	t.match(await send({ document }), { prompt: '', attachments: [{ type: 'file', name: 'terms.pdf' }] })
	const voice = { file_id: 'voice', duration: 12, mime_type: 'audio/ogg' }
	t.match(await send({ voice }), { prompt: '', attachments: [{ type: 'audio', seconds: 12 }] })

	const gone = await send({ photo: [{ file_id: 'gone' }], caption: 'And this?' })
	t.match(
		gone.prompt,
		/^And this\?\n\n\[Attached but not loaded: a photo \(the Bot API server answered with status 404\)\]$/,
	)
	t.notOk(gone.attachments)
	const large = await send({ document: { ...document, file_size: 30 * 1024 * 1024 } })
	t.match(large.prompt, /\[Attached but not loaded: a file "terms\.pdf" \(it is larger than 20 MiB\)\]/)
	telegram.fault('getFile', { error_code: 400, description: 'Bad Request: file is too big' })
	t.match((await send({ voice })).prompt, /Attached but not loaded: a voice message \(.*file is too big/)
	t.notMatch(JSON.stringify(await send({ voice })), telegram.token)
	t.match((await send({ sticker: { file_id: 'x' } })).conversation, /./)
	t.match(telegram.messages(chat).at(-1)?.text, /cannot read a sticker/)
})
