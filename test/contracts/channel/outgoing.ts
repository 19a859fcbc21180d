/** Checks of sending without faults. */
import type { Format, Markup } from '../../../plugins/channels/adapter.ts'
import type { ShownMessage, TestChat } from '../channel.ts'
import { has, must, nonce, same } from './harness.ts'
import type { Check } from './harness.ts'

/** The same lines in each markup, and the text that people see. */
const samples: Record<Markup, { text: string; words: string[] }> = {
	markdown: {
		text: '**bold** 1 < 2 & 3\n\n```js\nlet a = b\n```\n\nend',
		words: ['bold', '1 < 2 & 3', 'let a = b', 'end'],
	},
	html: {
		text: '<b>bold</b> 1 &lt; 2 &amp; 3\n<pre><code class="language-js">let a = b\n</code></pre>\nend',
		words: ['bold', '1 < 2 & 3', 'let a = b', 'end'],
	},
	plain: { text: '**bold** 1 < 2 &amp; <b>3</b>\n_end_', words: ['**bold** 1 < 2 &amp; <b>3</b>\n_end_'] },
}

export const outgoingChecks: Check[] = [
	{
		name: 'sends in every format',
		async run(harness) {
			const { connection } = await harness.connect()
			const chat = await harness.chat()
			for (const { markup } of harness.adapter.can.formats) {
				const { text, words } = samples[markup]
				const { id } = await connection.send(harness.message(chat, text, { markup }))
				must(typeof id === 'string' && /^[ -~]{1,128}$/.test(id), 'send returns the id of the new message')
				const shown = await find(chat, id)
				for (const word of words) {
					must(
						shown.text.includes(word),
						`${markup} shows ${JSON.stringify(word)}, and not ${JSON.stringify(shown.text)}`,
					)
				}
				must(shown.text.split('\n').includes('end') || markup === 'plain', `${markup} keeps line breaks`)
				must(markup !== 'html' || !shown.text.includes('<b>'), 'the tags of html are not shown')
			}
		},
	},
	{
		name: 'sends as much as can.formats allows',
		async run(harness) {
			const { connection } = await harness.connect()
			const chat = await harness.chat()
			for (const format of harness.adapter.can.formats) {
				const { markup } = format
				for (const letter of ['x', '漢', markup === 'html' ? '&amp;' : '&']) {
					const count = fitting(letter, format)
					const { id } = await connection.send(harness.message(chat, letter.repeat(count), { markup }))
					same((await find(chat, id)).text.length, count, `${count} characters of ${markup} are one message`)
				}
			}
		},
	},
	{
		name: 'replies to a message',
		needs: ['replies'],
		async run(harness) {
			const { connection } = await harness.connect()
			const chat = (await harness.platform.chat('group')) ?? (await harness.chat())
			await chat.say('a question')
			const { id: reply_to } = await harness.waitForMessage('a question')
			const { id } = await connection.send(harness.message(chat, 'an answer', { reply_to }))
			same((await find(chat, id)).reply_to, reply_to, 'an answer is shown as a reply to its message')
		},
	},
	{
		name: 'sends to several chats at once',
		async run(harness) {
			const { connection } = await harness.connect()
			const chats = [await harness.chat(), await harness.chat(), await harness.chat('group')]
			const texts = chats.map((_, i) => `for chat ${i}`)
			await Promise.all(chats.map((chat, i) => connection.send(harness.message(chat, texts[i] as string))))
			const shown = await Promise.all(chats.map(async (chat) => (await chat.shown()).map(({ text }) => text)))
			same(
				shown,
				texts.map((text) => [text]),
				'each chat gets its own message',
			)
		},
	},
	{
		name: 'edits',
		needs: ['edits'],
		async run(harness) {
			const { connection } = await harness.connect()
			const edit = has(connection.edit, 'connection.edit', 'edits')
			const chat = await harness.chat()
			const message = harness.message(chat, 'one')
			const { id } = await connection.send(message)
			for (const text of ['two', 'two', 'one', 'two']) {
				await edit.call(connection, id, { ...message, text }) // the same text again is no error
				same((await find(chat, id)).text, text, 'an edit is shown, also one back to an earlier text')
			}
			for (const format of harness.adapter.can.formats) {
				const { markup } = format
				const count = fitting('漢', format)
				await edit.call(connection, id, { ...message, markup, text: '漢'.repeat(count) })
				same((await find(chat, id)).text.length, count, `an edit may be as long as ${markup} allows`)
			}
			same((await chat.shown()).length, 1, 'an edit creates no new message')
		},
	},
	{
		name: 'shows a draft',
		needs: ['drafts'],
		async run(harness) {
			const { connection } = await harness.connect()
			const chat = await harness.chat()
			const draft = has(connection.draft, 'connection.draft', 'drafts')
			const drafted = has(chat.draft, 'chat.draft', 'drafts')
			const message = harness.message(chat, 'in the ma')
			for (const text of ['in the ma', 'in the making']) {
				await draft.call(connection, { ...message, text })
				same(drafted.call(chat), text, 'a draft replaces the previous one')
			}
			same(await chat.shown(), [], 'a draft is not a message')
			const { id } = await connection.send({ ...message, text: 'made' })
			same(
				(await chat.shown()).map((one) => [one.id, one.text]),
				[[id, 'made']],
				'the message is shown once',
			)
		},
	},
	{
		name: 'shows that it is typing',
		needs: ['typing'],
		async run(harness) {
			const { connection } = await harness.connect()
			const chat = await harness.chat()
			const typing = has(connection.typing, 'connection.typing', 'typing')
			const typed = has(chat.typed, 'chat.typed', 'typing')
			await typing.call(connection, { id: chat.id })
			must(typed.call(chat) > 0, 'typing is shown in the chat')
			same(await chat.shown(), [], 'typing is not a message')
		},
	},
	{
		name: 'distinguishes messages with the same text',
		async run(harness) {
			const { connection } = await harness.connect()
			const chat = await harness.chat()
			const message = harness.message(chat, 'yes')
			const { id: first } = await connection.send(message)
			const { id: second } = await connection.send({ ...message, nonce: nonce() })
			must(first !== second, 'another nonce is another message')
			same((await chat.shown()).length, 2, 'two messages are shown if two were sent')
		},
	},
]

/** How many of this character fit into one message. */
function fitting(letter: string, { max_length, max_bytes = Infinity }: Format): number {
	return Math.min(max_length, Math.floor(max_bytes / Buffer.byteLength(letter)))
}

async function find(chat: TestChat, id: string): Promise<ShownMessage> {
	const shown = (await chat.shown()).find((one) => one.id === id)
	must(shown, 'a sent message is shown in the chat, under the id that send returned')
	return shown
}
