/** Converts an incoming message to the form of the gateway. */
import type {
	Chat,
	ExternalReplyInfo,
	Message,
	MessageEntity,
	MessageOrigin,
	Update,
	User,
	UserFromGetMe,
} from 'grammy/types'
import { defined } from '../../core/util/defined.ts'
import type { IncomingFile, IncomingMessage, QuotedMessage } from '../channels/adapter.ts'
import { textOf } from './rich-text.ts'

export type Me = Pick<UserFromGetMe, 'id' | 'username'>

/** The kinds of updates that are requested. */
export const wantedUpdates = ['message', 'stopped_message_generation'] as const satisfies (keyof Update)[]

/** Commands that a group may give to the bot without its name, as the command menu of some Telegram clients does. */
export const commands = [
	{ command: 'start', description: 'Connect this chat to an agent' },
	{ command: 'new', description: 'Begin a new conversation' },
	{ command: 'stop', description: 'Stop the current answer' },
	{ command: 'model', description: 'Show or change the model' },
	{ command: 'usage', description: 'Show tokens and cost' },
	{ command: 'context', description: 'Show how much of the conversation the model sees' },
	{ command: 'compact', description: 'Summarize the older part of the conversation' },
	{ command: 'whoami', description: 'Show the ids of this chat' },
	{ command: 'help', description: 'List the commands' },
]

/** Undefined for messages that need no answer: other bots' messages, service messages, commands for another bot. */
export function incomingOf(
	{ update_id, message, stopped_message_generation }: Update,
	me: Me,
): IncomingMessage | undefined {
	const cursor = String(update_id)
	if (stopped_message_generation) {
		const { chat, message_thread_id } = stopped_message_generation
		const thread = message_thread_id === undefined ? {} : { thread_id: String(message_thread_id) }
		return {
			id: `stop-${cursor}`,
			chat: { id: String(chat.id), kind: 'private', ...thread },
			sender: senderOf(chat),
			text: '/stop',
			addressed: true,
			cursor,
		}
	}
	if (!message || isIgnored(message)) return undefined
	const said = saidBy(message)
	const attachment = attachmentOf(message)
	if (said.text === '' && attachment === undefined) return undefined
	const read = readText(said, me)
	if (!read) return undefined
	const isPrivate = message.chat.type === 'private'
	return {
		id: String(message.message_id),
		chat: { id: String(message.chat.id), kind: isPrivate ? 'private' : 'group', ...threadOf(message) },
		sender: senderOf(message.sender_chat ?? message.from),
		text: read.text,
		addressed: isPrivate || read.named || isReplyTo(message, me),
		...(attachment !== undefined && { attachment }),
		...filesOf(message),
		...quoteIn(message, me),
		cursor,
	}
}

function isIgnored(message: Message & { from: User }): boolean {
	const { type, is_direct_messages } = message.chat as Chat & { type: string; is_direct_messages?: true }
	if ((type !== 'private' && type !== 'group' && type !== 'supergroup') || is_direct_messages) return true
	// A message that is visible to one person only, or sent to another account, cannot be answered where it was sent.
	if (message.message_id === 0 || message.ephemeral_message_id !== undefined) return true
	if (message.business_connection_id !== undefined || message.guest_query_id !== undefined) return true
	// A person may write as a group or channel; `from` is then a bot of Telegram.
	return message.sender_chat ? message.is_automatic_forward === true : message.from.is_bot
}

function senderOf(sender: User | Chat): IncomingMessage['sender'] {
	const name = nameOf(sender)
	return { id: String(sender.id), ...(name !== '' && { name }) }
}

function nameOf(sender: User | Chat | undefined): string {
	const { title, first_name, last_name } = (sender ?? {}) as { title?: string; first_name?: string; last_name?: string }
	return title ?? [first_name, last_name].filter(Boolean).join(' ')
}

/** Outside of topics, the same field identifies a thread of replies, which is not a separate conversation. */
function threadOf({ is_topic_message, message_thread_id }: Message): { thread_id?: string } {
	return is_topic_message && message_thread_id !== undefined ? { thread_id: String(message_thread_id) } : {}
}

/** In a topic, every other message counts as a reply to the first one. */
function isReplyTo({ reply_to_message: to }: Message, me: Me): boolean {
	return to?.from?.id === me.id && !to.forum_topic_created
}

/** Ignores an unreadable quote, so that the message itself is not lost. */
function quoteIn(message: Message, me: Me): { quoted?: QuotedMessage } {
	try {
		return quotedOf(message, me)
	} catch {
		return {}
	}
}

/** The selected part of the replied-to message, or all of it. The first message of a topic has no text. */
function quotedOf(message: Message, me: Me): { quoted?: QuotedMessage } {
	const { reply_to_message: to, external_reply: external, quote } = message
	const whole = to && saidBy(to).text
	const replied = to ?? external
	const kind = replied && attachmentOf(replied)
	const text = quote?.text || whole || (kind === undefined ? '' : `[${kind}]`)
	if (text === '') return {}
	const sender = to ? nameOf(to.sender_chat ?? to.from) : external && authorOf(external.origin)
	const own = to !== undefined && to.sender_chat === undefined && to.from?.id === me.id
	return { quoted: { text, ...(sender && { sender }), ...(own && { own }) } }
}

/** The author of a message in another chat. */
function authorOf(origin: MessageOrigin): string {
	if (origin.type === 'hidden_user') return origin.sender_user_name
	return nameOf(origin.type === 'user' ? origin.sender_user : origin.type === 'chat' ? origin.sender_chat : origin.chat)
}

interface Said {
	text: string
	entities: readonly MessageEntity[]
}

function saidBy(message: Message): Said {
	if (message.text !== undefined) return { text: message.text, entities: message.entities ?? [] }
	if (message.caption !== undefined) return { text: message.caption, entities: message.caption_entities ?? [] }
	return { text: message.rich_message ? textOf(message.rich_message) : '', entities: [] }
}

/** The text without a mention that only addresses the bot, and whether the bot is mentioned. Undefined for a command to another bot. */
function readText({ text, entities }: Said, me: Me): { text: string; named: boolean } | undefined {
	const own = `@${me.username}`.toLowerCase()
	const partOf = ({ offset, length }: MessageEntity): string => text.slice(offset, offset + length)
	const command = entities.find(({ type, offset }) => type === 'bot_command' && offset === 0)
	if (command) {
		const [name = '', bot] = partOf(command).split('@')
		if (bot !== undefined && `@${bot.toLowerCase()}` !== own) return undefined
		const isOurs = bot !== undefined || commands.some((one) => `/${one.command}` === name.toLowerCase())
		return { text: (name + text.slice(command.length)).trim(), named: isOurs }
	}
	const mentions = entities.filter(
		(entity) =>
			(entity.type === 'mention' && partOf(entity).toLowerCase() === own) ||
			(entity.type === 'text_mention' && entity.user.id === me.id),
	)
	return { text: withoutName(text, mentions), named: mentions.length > 0 }
}

/** Removes mentions at the beginning and the end. In the middle, a mention may be part of the sentence. */
function withoutName(text: string, mentions: readonly MessageEntity[]): string {
	let [from, to] = [0, text.length]
	for (const { offset, length } of mentions) {
		if (text.slice(from, offset).trim() === '') from = offset + length
	}
	for (const { offset, length } of mentions.toReversed()) {
		if (offset >= from && text.slice(offset + length, to).trim() === '') to = offset
	}
	const rest = text.slice(from, to).trim()
	return from > 0 ? rest.replace(/^[,:]\s*/, '') : rest
}

/** The order matters: some messages also have the field of a simpler kind. */
const attachments = {
	live_photo: 'a live photo',
	photo: 'a photo',
	voice: 'a voice message',
	video_note: 'a video message',
	video: 'a video',
	animation: 'an animation',
	audio: 'an audio file',
	document: 'a file',
	sticker: 'a sticker',
	venue: 'a place',
	location: 'a location',
	contact: 'a contact',
	poll: 'a poll',
	checklist: 'a checklist',
	story: 'a story',
	paid_media: 'paid media',
	dice: 'a dice',
	game: 'a game',
	invoice: 'an invoice',
} as const satisfies Partial<Record<keyof Message, string>>

function attachmentOf(message: Pick<Message, keyof ExternalReplyInfo & keyof typeof attachments>): string | undefined {
	const kind = (Object.keys(attachments) as (keyof typeof attachments)[]).find((key) => message[key] !== undefined)
	return kind && attachments[kind]
}

/** The files that models can use. A photo has several sizes, the largest last. */
function filesOf(message: Message): { attachments?: IncomingFile[] } {
	const { voice, audio, document } = message
	const photo = message.live_photo ? undefined : message.photo?.at(-1)
	const file = photo ?? voice ?? audio ?? (message.animation ? undefined : document)
	if (!file?.file_id) return {}
	const { file_id, file_size, mime_type, file_name, duration } = file as typeof file & {
		mime_type?: string
		file_name?: string
		duration?: number
	}
	return {
		attachments: [
			{
				what: attachmentOf(message) ?? 'a file',
				...defined({ name: file_name, media_type: mime_type, size: file_size, seconds: duration }),
				ref: file_id,
			},
		],
	}
}
