/** The Telegram channel passes the contract suite. */
import t from 'tap'
import type { ChannelAdapter, ChatKind } from '../../../plugins/channels/adapter.ts'
import { telegram as adapter } from '../../../plugins/telegram/index.ts'
import { checkChannel } from '../../contracts/channel.ts'
import type { TestChat, TestPlatform } from '../../contracts/channel.ts'
import { startTelegram } from '../../support/telegram.ts'
import type { Fault, Update } from '../../support/telegram.ts'

checkChannel(t, {
	adapter: adapter as ChannelAdapter,
	platform: telegramPlatform,
	abilities: { unguarded: false, failed: false, format: false },
})

async function telegramPlatform(): Promise<TestPlatform> {
	const telegram = await startTelegram()
	const next = (fault: Fault): void => {
		for (const method of ['sendMessage', 'sendDocument']) telegram.fault(method, fault)
	}
	let chats = 0

	function chat(kind: ChatKind): TestChat {
		const n = ++chats
		const target = kind === 'private' ? telegram.person(n, `P${n}`) : telegram.group(-1_001_000_000_000 - n, `G${n}`)
		const name = kind === 'private' ? '' : `@${telegram.bot.username} `
		let newest: Update | undefined
		const say = (text: string, fields: object = {}): void => {
			newest = telegram.say(target, text, { ...fields })
		}
		return {
			id: String(target.id),
			kind,
			say: (text) => say(name + text),
			mumble: (text) => say(text),
			sayInThread: (text) => say(name + text, { message_thread_id: 9, is_topic_message: true }),
			reply: (id, text) => say(text, { reply_to_message: { message_id: Number(id), from: telegram.bot } }),
			attach: () => say(name, { photo: [{}] }),
			attachFile(bytes, file_name) {
				telegram.files.set('file', Buffer.from(bytes))
				say(name, { document: { file_id: 'file', file_name, file_size: bytes.length } })
			},
			repeat: () => void telegram.push({ message: newest?.message }),
			shown: () =>
				telegram.messages(target).map(({ message_id, text, reply_to, thread_id, file }) => ({
					id: String(message_id),
					text: text.replaceAll('&lt;', '<'),
					reply_to: reply_to?.toString(),
					thread_id: thread_id?.toString(),
					file,
				})),
			typed: () =>
				telegram.calls.filter(({ method, payload }) => method === 'sendChatAction' && payload.chat_id === target.id)
					.length,
			...(kind === 'private' && {
				draft: () => telegram.drafts.findLast(({ chat_id }) => chat_id === target.id)?.text,
			}),
		}
	}

	return {
		config: { api_root: telegram.url },
		token: telegram.token,
		wrong_token: '1:nobody-has-this-one',
		chat,
		cut: () => void telegram.cut(),
		open: telegram.busy,
		close: telegram.stop,
		next: {
			lost: () => next('cut after'),
			limited: () =>
				next({ error_code: 429, description: 'Too Many Requests: retry after 9', parameters: { retry_after: 9 } }),
			refused: () => next({ error_code: 403, description: 'Forbidden: bot was kicked from the supergroup chat' }),
			stalled: () => next('stall'),
		},
		silent: telegram.silence,
		revoke() {
			telegram.revoke()
			telegram.cut()
		},
	}
}
