/** Checks of incoming messages: their fields, and that none is lost. */
import type { IncomingMessage } from '../../../plugins/channels/adapter.ts'
import type { TestChat } from '../channel.ts'
import { has, must, same } from './harness.ts'
import type { Check } from './harness.ts'

export const incomingChecks: Check[] = [
	{
		name: 'receives what a person says',
		async run(harness) {
			await harness.connect()
			const chat = await harness.chat()
			await chat.say('hello')
			const first = await harness.waitForMessage('hello')
			checkForm(first, chat)
			same(first.addressed, true, 'a message to the bot is addressed')
			await chat.say('hello again')
			const second = await harness.waitForMessage('hello again')
			must(first.id !== second.id, 'no two messages of a chat have the same id')
			same(second.sender.id, first.sender.id, 'a person keeps the same sender.id')
		},
	},
	{
		name: 'does not change the text',
		async run(harness) {
			await harness.connect()
			const chat = await harness.chat()
			const texts = ['/start', 'two\nlines, *stars*, <b>tags</b> & `ticks`', 'Grüße 👩‍👩‍👧 漢字', 'x'.repeat(1500)]
			for (const text of texts) {
				await chat.say(text)
				await harness.waitForMessage(text)
			}
		},
	},
	{
		name: 'recognizes messages to the bot in a group',
		needs: ['groups'],
		async run(harness) {
			const chat = has(await harness.platform.chat('group'), 'a chat of the kind group', 'groups')
			await harness.connect()
			await chat.mumble?.('nobody in particular')
			await chat.say('and you?')
			const said = await harness.waitForMessage('and you?') // without the bot's name
			checkForm(said, chat)
			same(said.addressed, true, 'a message that mentions the bot is addressed')
			const mumbled = harness.received.find(({ text }) => text.includes('nobody'))
			must(mumbled?.addressed !== true, 'a message that does not mention the bot is not addressed')
		},
	},
	{
		name: 'recognizes replies to the bot in a group',
		needs: ['groups', 'replies'],
		async run(harness) {
			const chat = has(await harness.platform.chat('group'), 'a chat of the kind group', 'groups')
			const reply = has(chat.reply, 'chat.reply', 'replies')
			const { connection } = await harness.connect()
			const { id } = await connection.send(harness.message(chat, 'shall I?'))
			await reply.call(chat, id, 'yes, do')
			same((await harness.waitForMessage('yes, do')).addressed, true, 'a reply to the bot is addressed')
		},
	},
	{
		name: 'recognizes threads, and sends to them',
		needs: ['threads'],
		async run(harness) {
			const chat = (await harness.platform.chat('group')) ?? (await harness.chat())
			const sayInThread = has(chat.sayInThread, 'chat.sayInThread', 'threads')
			const { connection } = await harness.connect()
			await chat.say('in the open')
			same(
				(await harness.waitForMessage('in the open')).chat.thread_id,
				undefined,
				'outside of threads there is no thread_id',
			)
			await sayInThread.call(chat, 'aside')
			const { thread_id } = (await harness.waitForMessage('aside')).chat
			must(thread_id, 'a message in a thread has its thread_id')
			const sent = harness.message(chat, 'aside, too', { chat: { id: chat.id, kind: chat.kind, thread_id } })
			const { id } = await connection.send(sent)
			const shown = (await chat.shown()).find((one) => one.id === id)
			same(shown?.thread_id, thread_id, 'a message to a thread is shown in it')
		},
	},
	{
		name: 'reports attachments',
		needs: ['attachments'],
		async run(harness) {
			const chat = await harness.chat()
			const attach = has(chat.attach, 'chat.attach', 'attachments')
			await harness.connect()
			await attach.call(chat)
			await harness.until(() => harness.taken.length > 0, 'a message with an attachment is received')
			const message = harness.taken[0] as IncomingMessage
			checkForm(message, chat)
			must(message.attachment || message.attachments?.length, 'attachment or attachments describes the file')
		},
	},
	{
		name: 'loads a file, even on a later connection',
		needs: ['files'],
		async run(harness) {
			const chat = await harness.chat()
			const attachFile = has(chat.attachFile, 'chat.attachFile', 'files')
			const live = await harness.connect()
			const bytes = Uint8Array.from({ length: 50_000 }, (_, at) => (at * 7) % 256)
			await attachFile.call(chat, bytes, 'notes.bin')
			await harness.until(() => harness.taken.length > 0, 'a message with a file is received')
			const [file] = harness.taken[0]?.attachments ?? []
			must(file, 'attachments has the file')
			const { ref, what } = file
			must(typeof what === 'string' && what !== '', '`what` describes the file')
			must(typeof ref === 'string' && ref.length > 0 && ref.length <= 4096, 'a ref is 1-4,096 characters')
			must(!ref.includes(harness.platform.token), 'a ref does not contain the token, since it is stored')
			const signal = new AbortController().signal
			const load = has(live.connection.load, 'connection.load', 'files').bind(live.connection)
			const loaded = await harness.within(load(ref, { signal, max_bytes: bytes.length }), 'load returns')
			same(
				Buffer.from(loaded).toString('hex'),
				Buffer.from(bytes).toString('hex'),
				'load returns the bytes of the file',
			)
			const refused = async (work: Promise<Uint8Array>, what: string): Promise<void> => {
				const came = await harness.within(
					work.then(
						() => true,
						() => false,
					),
					what,
				)
				must(!came, what)
			}
			await refused(
				load(ref, { signal, max_bytes: bytes.length - 1 }),
				'load throws if the file is larger than max_bytes',
			)
			await refused(
				load(ref, { signal: AbortSignal.abort(), max_bytes: bytes.length }),
				'load throws once its signal has aborted',
			)
			await live.close()
			const { connection } = await harness.connect()
			const again = await connection.load?.(ref, { signal, max_bytes: bytes.length })
			same(again?.length, bytes.length, 'a ref is also valid for a later connection')
		},
	},
	{
		name: 'keeps the order',
		async run(harness) {
			await harness.connect()
			const chat = await harness.chat()
			const texts = Array.from({ length: 12 }, (_, i) => `number ${i}`)
			for (const text of texts) await chat.say(text)
			await harness.waitForMessage('number 11')
			const order = harness.taken.map(({ text }) => text)
			same(order, texts, 'messages of a chat are received in the order in which they were sent')
		},
	},
	{
		name: 'does not receive its own messages',
		async run(harness) {
			const { connection } = await harness.connect()
			const chat = await harness.chat()
			await connection.send(harness.message(chat, 'it is me'))
			await chat.say('who else?')
			await harness.waitForMessage('who else?')
			same(
				harness.received.map(({ text }) => text),
				['who else?'],
				'the bot does not receive its own messages',
			)
		},
	},
	{
		name: 'keeps the id of a message that is delivered twice',
		needs: ['repeats'],
		async run(harness) {
			await harness.connect()
			const chat = await harness.chat()
			const repeat = has(chat.repeat, 'chat.repeat', 'repeats')
			await chat.say('once')
			await harness.waitForMessage('once')
			await repeat.call(chat)
			await chat.say('after that')
			await harness.waitForMessage('after that')
			same(
				harness.taken.map(({ text }) => text),
				['once', 'after that'],
				'a message that is delivered again has the same id',
			)
		},
	},
	{
		name: 'receives refused messages again',
		async run(harness) {
			const first = await harness.connect()
			const chat = await harness.chat()
			await chat.say('here')
			await harness.waitForMessage('here')
			await first.close()
			// Sent while disconnected, so that they arrive in one batch.
			for (const text of ['before', 'too much', 'behind it']) await chat.say(text)
			let is_full = true
			harness.take = ({ text }) => {
				if (is_full && text !== 'before') throw new Error('no space is left')
			}
			await harness.connectInVain('`lost` is called when receive throws, or connect throws')
			is_full = false
			await harness.connect()
			await harness.waitForMessage('behind it')
			same(
				harness.taken.map(({ text }) => text).toSorted(),
				['before', 'behind it', 'here', 'too much'],
				'all messages are accepted then',
			)
		},
	},
	{
		name: 'confirms no message before it is accepted',
		async run(harness) {
			const live = await harness.connect()
			const chat = await harness.chat()
			await chat.say('taken')
			await harness.waitForMessage('taken')
			harness.take = () => new Promise(() => {}) // the gateway dies before it is durable
			await chat.say('not yet')
			await harness.until(() => harness.received.some(({ text }) => text === 'not yet'), 'the next message is received')
			await chat.say('one more')
			await live.close()
			harness.take = () => {}
			await harness.connect()
			await harness.waitForMessage('not yet')
			await harness.waitForMessage('one more')
		},
	},
	{
		name: 'delivers messages sent since its first connection, even if that received none',
		async run(harness) {
			const chat = await harness.chat('group')
			const live = await harness.connect()
			await live.close()
			await chat.say('the very first')
			await harness.connect()
			await harness.waitForMessage('the very first')
		},
	},
	{
		name: 'delivers messages sent while it was disconnected',
		async run(harness) {
			const live = await harness.connect()
			const chat = await harness.chat()
			await chat.say('here')
			await harness.waitForMessage('here')
			await live.close()
			const texts = Array.from({ length: 120 }, (_, i) => `missed ${i}`)
			for (const text of texts) await chat.say(text)
			await harness.connect()
			await harness.waitForMessage('missed 119')
			const came = harness.taken.map(({ text }) => text).filter((text) => text.startsWith('missed'))
			same(came, texts, 'all messages arrive, in order')
		},
	},
]

function checkForm({ id, chat, sender, text, attachment, cursor }: IncomingMessage, from: TestChat): void {
	same(chat.id, from.id, 'chat.id is the id of the chat')
	same(chat.kind, from.kind, 'chat.kind is the kind of the chat')
	const ids = { id, 'chat.id': chat.id, 'sender.id': sender.id, 'chat.thread_id': chat.thread_id ?? 'none' }
	for (const [name, value] of Object.entries(ids)) {
		must(
			typeof value === 'string' && /^[ -~]{1,128}$/.test(value),
			`${name} is 1-128 printable ASCII characters, unlike ${JSON.stringify(value)}`,
		)
	}
	for (const one of chat.within ?? []) must(/^[ -~]{1,128}$/.test(one), 'chat.within contains ids')
	must(typeof text === 'string', "text is a string, '' if there is none")
	for (const one of [attachment, cursor, sender.name]) {
		must(one === undefined || (typeof one === 'string' && one !== ''), 'absent fields are omitted, not empty')
	}
}
