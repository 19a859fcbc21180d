/** What comes in: what a message says, and that none is lost. */
import type { IncomingMessage } from '../../../plugins/channels/adapter.ts'
import type { TestChat } from '../channel.ts'
import { has, must, same } from './desk.ts'
import type { Check } from './desk.ts'

export const incomingChecks: Check[] = [
	{
		name: 'receives what a person says',
		async run(desk) {
			await desk.connect()
			const chat = await desk.chat()
			await chat.say('hello')
			const first = await desk.heard('hello')
			checkForm(first, chat)
			same(first.addressed, true, 'what is said to the bot is addressed')
			await chat.say('hello again')
			const second = await desk.heard('hello again')
			must(first.id !== second.id, 'no two messages of a chat have the same id')
			same(second.sender.id, first.sender.id, 'a person keeps the same sender.id')
		},
	},
	{
		name: 'leaves the text as it is',
		async run(desk) {
			await desk.connect()
			const chat = await desk.chat()
			const texts = ['/start', 'two\nlines, *stars*, <b>tags</b> & `ticks`', 'Grüße 👩‍👩‍👧 漢字', 'x'.repeat(1500)]
			for (const text of texts) {
				await chat.say(text)
				await desk.heard(text)
			}
		},
	},
	{
		name: 'knows what is for the bot in a group',
		needs: ['groups'],
		async run(desk) {
			const chat = has(await desk.platform.chat('group'), 'a chat of the kind group', 'groups')
			await desk.connect()
			await chat.mumble?.('nobody in particular')
			await chat.say('and you?')
			const said = await desk.heard('and you?') // which is without the bot's own name
			checkForm(said, chat)
			same(said.addressed, true, 'what is said to the name of the bot is addressed')
			const mumbled = desk.received.find(({ text }) => text.includes('nobody'))
			must(mumbled?.addressed !== true, 'what is said to nobody in particular is not addressed')
		},
	},
	{
		name: 'knows an answer to the bot in a group',
		needs: ['groups', 'replies'],
		async run(desk) {
			const chat = has(await desk.platform.chat('group'), 'a chat of the kind group', 'groups')
			const reply = has(chat.reply, 'chat.reply', 'replies')
			const { connection } = await desk.connect()
			const { id } = await connection.send(desk.message(chat, 'shall I?'))
			await reply.call(chat, id, 'yes, do')
			same((await desk.heard('yes, do')).addressed, true, 'what is said in reply to the bot is addressed')
		},
	},
	{
		name: 'knows threads, and answers in them',
		needs: ['threads'],
		async run(desk) {
			const chat = (await desk.platform.chat('group')) ?? (await desk.chat())
			const sayInThread = has(chat.sayInThread, 'chat.sayInThread', 'threads')
			const { connection } = await desk.connect()
			await chat.say('in the open')
			same((await desk.heard('in the open')).chat.thread_id, undefined, 'outside of threads there is no thread_id')
			await sayInThread.call(chat, 'aside')
			const { thread_id } = (await desk.heard('aside')).chat
			must(thread_id, 'a message in a thread has its thread_id')
			const sent = desk.message(chat, 'aside, too', { chat: { id: chat.id, kind: chat.kind, thread_id } })
			const { id } = await connection.send(sent)
			const shown = (await chat.shown()).find((one) => one.id === id)
			same(shown?.thread_id, thread_id, 'what is sent to a thread shows in it')
		},
	},
	{
		name: 'says that something is attached',
		needs: ['attachments'],
		async run(desk) {
			const chat = await desk.chat()
			const attach = has(chat.attach, 'chat.attach', 'attachments')
			await desk.connect()
			await attach.call(chat)
			await desk.until(() => desk.taken.length > 0, 'a message with an attachment is received')
			const message = desk.taken[0] as IncomingMessage
			checkForm(message, chat)
			must(message.attachment || message.attachments?.length, 'attachment or attachments names what came')
		},
	},
	{
		name: 'loads a file, also by a later connection',
		needs: ['files'],
		async run(desk) {
			const chat = await desk.chat()
			const attachFile = has(chat.attachFile, 'chat.attachFile', 'files')
			const live = await desk.connect()
			const bytes = Uint8Array.from({ length: 50_000 }, (_, at) => (at * 7) % 256)
			await attachFile.call(chat, bytes, 'notes.bin')
			await desk.until(() => desk.taken.length > 0, 'a message with a file is received')
			const [file] = desk.taken[0]?.attachments ?? []
			must(file, 'attachments has the file')
			const { ref, what } = file
			must(typeof what === 'string' && what !== '', 'a file says what it is')
			must(typeof ref === 'string' && ref.length > 0 && ref.length <= 4096, 'a ref is 1-4,096 characters')
			must(!ref.includes(desk.platform.token), 'a ref does not contain the token, since it is stored')
			const signal = new AbortController().signal
			const load = has(live.connection.load, 'connection.load', 'files').bind(live.connection)
			const loaded = await desk.within(load(ref, { signal, max_bytes: bytes.length }), 'load returns')
			same(
				Buffer.from(loaded).toString('hex'),
				Buffer.from(bytes).toString('hex'),
				'load returns the bytes of the file',
			)
			const refused = async (work: Promise<Uint8Array>, what: string): Promise<void> => {
				const came = await desk.within(
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
			const { connection } = await desk.connect()
			const again = await connection.load?.(ref, { signal, max_bytes: bytes.length })
			same(again?.length, bytes.length, 'a ref is also valid for a later connection')
		},
	},
	{
		name: 'keeps the order',
		async run(desk) {
			await desk.connect()
			const chat = await desk.chat()
			const texts = Array.from({ length: 12 }, (_, i) => `number ${i}`)
			for (const text of texts) await chat.say(text)
			await desk.heard('number 11')
			const order = desk.taken.map(({ text }) => text)
			same(order, texts, 'messages of a chat are received in the order in which they were said')
		},
	},
	{
		name: 'hears nothing of its own',
		async run(desk) {
			const { connection } = await desk.connect()
			const chat = await desk.chat()
			await connection.send(desk.message(chat, 'it is me'))
			await chat.say('who else?')
			await desk.heard('who else?')
			same(
				desk.received.map(({ text }) => text),
				['who else?'],
				'what the bot sends does not come in',
			)
		},
	},
	{
		name: 'keeps the id of a message that is delivered twice',
		needs: ['repeats'],
		async run(desk) {
			await desk.connect()
			const chat = await desk.chat()
			const repeat = has(chat.repeat, 'chat.repeat', 'repeats')
			await chat.say('once')
			await desk.heard('once')
			await repeat.call(chat)
			await chat.say('after that')
			await desk.heard('after that')
			same(
				desk.taken.map(({ text }) => text),
				['once', 'after that'],
				'a message that comes again has the same id',
			)
		},
	},
	{
		name: 'leaves what cannot be taken with the platform',
		async run(desk) {
			const first = await desk.connect()
			const chat = await desk.chat()
			await chat.say('here')
			await desk.heard('here')
			await first.close()
			// Said while nobody listens, so that they come at once.
			for (const text of ['before', 'too much', 'behind it']) await chat.say(text)
			let is_full = true
			desk.take = ({ text }) => {
				if (is_full && text !== 'before') throw new Error('no space is left')
			}
			await desk.connectInVain('`lost` is called where receive throws, or connect throws')
			is_full = false
			await desk.connect()
			await desk.heard('behind it')
			same(
				desk.taken.map(({ text }) => text).toSorted(),
				['before', 'behind it', 'here', 'too much'],
				'all of it is taken then',
			)
		},
	},
	{
		name: 'confirms nothing that is not taken yet',
		async run(desk) {
			const live = await desk.connect()
			const chat = await desk.chat()
			await chat.say('taken')
			await desk.heard('taken')
			desk.take = () => new Promise(() => {}) // the gateway dies before it is durable
			await chat.say('not yet')
			await desk.until(() => desk.received.some(({ text }) => text === 'not yet'), 'the next message is received')
			await chat.say('one more')
			await live.close()
			desk.take = () => {}
			await desk.connect()
			await desk.heard('not yet')
			await desk.heard('one more')
		},
	},
	{
		name: 'brings what was said since its first connection, though nothing had come by that',
		async run(desk) {
			const chat = await desk.chat('group')
			const live = await desk.connect()
			await live.close()
			await chat.say('the very first')
			await desk.connect()
			await desk.heard('the very first')
		},
	},
	{
		name: 'brings what was said while it was away',
		async run(desk) {
			const live = await desk.connect()
			const chat = await desk.chat()
			await chat.say('here')
			await desk.heard('here')
			await live.close()
			const texts = Array.from({ length: 120 }, (_, i) => `missed ${i}`)
			for (const text of texts) await chat.say(text)
			await desk.connect()
			await desk.heard('missed 119')
			const came = desk.taken.map(({ text }) => text).filter((text) => text.startsWith('missed'))
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
	must(typeof text === 'string', "text is text, '' where there is none")
	for (const one of [attachment, cursor, sender.name]) {
		must(one === undefined || (typeof one === 'string' && one !== ''), 'what is absent is left out, and not empty')
	}
}
