import { MessageFlags, MessageType } from 'discord.js'
import type { APIMessage } from 'discord.js'
import type { IncomingFile, IncomingMessage, QuotedMessage } from '../channels/adapter.ts'
import type { MessagePlace } from './places.ts'
import { isSnowflake } from './snowflake.ts'

/** As Discord's gateway and its REST API return it; only the gateway includes the sender's nickname on the server. */
export type DiscordMessage = Pick<APIMessage, 'id' | 'channel_id' | 'author' | 'type'> &
	Partial<APIMessage> & { guild_id?: string; member?: { nick?: string | null } }

/** Whether a person wrote the message. False for messages of bots and webhooks, system messages, and invalid ids. */
export function isFromPerson({ id, channel_id, author, type, webhook_id }: DiscordMessage): boolean {
	if (![id, channel_id, author?.id].every(isSnowflake)) return false
	if (author.bot || author.system || webhook_id !== undefined) return false
	return type === MessageType.Default || type === MessageType.Reply
}

/** Converts a person's message to the form of the gateway. */
export function incomingOf(message: DiscordMessage, place: MessagePlace, bot_id: string): IncomingMessage {
	const { id, channel_id, author, member, mentions = [], mention_roles = [] } = message
	const name = member?.nick ?? author.global_name ?? author.username
	const attachment = attachmentOf(message)
	const isNamed =
		mentions.some((user) => user.id === bot_id) ||
		(place.bot_role !== undefined && mention_roles.includes(place.bot_role))
	return {
		id,
		chat: { id: channel_id, kind: place.kind, ...(place.within.length > 0 && { within: place.within }) },
		sender: { id: author.id, ...(name && { name }) },
		text: textOf(message, place, bot_id),
		addressed: place.kind === 'private' || isNamed,
		...(attachment !== undefined && { attachment }),
		...filesOf(message),
		...quoteIn(message, place, bot_id),
		cursor: id,
	}
}

/** The quoted message; it is null if it was deleted. Ignores an unreadable one, so that the reply itself is not lost. */
function quoteIn(
	{ referenced_message: to }: DiscordMessage,
	place: MessagePlace,
	bot_id: string,
): { quoted?: QuotedMessage } {
	try {
		return to ? quotedOf(to, place, bot_id) : {}
	} catch {
		return {}
	}
}

/** Discord delivers no nickname with a quoted message. */
function quotedOf(to: DiscordMessage, place: MessagePlace, bot_id: string): { quoted?: QuotedMessage } {
	const attachment = attachmentOf(to)
	const text = textOf(to, place, bot_id) || (attachment === undefined ? '' : `[${attachment}]`)
	if (text === '') return {}
	const sender = to.author.global_name ?? to.author.username
	return { quoted: { text, ...(sender && { sender }), ...(to.author.id === bot_id && { own: true }) } }
}

/** Removes mentions of the bot at both ends, and replaces other mentions with display names. */
function textOf({ content = '', mentions = [] }: DiscordMessage, { bot_role }: MessagePlace, bot_id: string): string {
	const isBot = (sign: string, id: string): boolean => id === (sign === '&' ? bot_role : bot_id)
	let text = content.trim()
	for (let match; (match = /^<@([!&]?)(\d{1,20})>[\s,:]*/.exec(text)) && isBot(match[1] ?? '', match[2] ?? '');)
		text = text.slice(match[0].length)
	for (let match; (match = /<@([!&]?)(\d{1,20})>$/.exec(text)) && isBot(match[1] ?? '', match[2] ?? '');)
		text = text.slice(0, match.index).trimEnd()
	const names = new Map(mentions.map((user) => [user.id, user.global_name ?? user.username]))
	return text.replace(/<@!?(\d{1,20})>/g, (all, id: string) => (names.has(id) ? `@${names.get(id)}` : all))
}

const kinds: [RegExp, one: string, many: string][] = [
	[/^image\//, 'an image', 'images'],
	[/^video\//, 'a video', 'videos'],
	[/^audio\//, 'an audio file', 'audio files'],
	[/^/, 'a file', 'files'],
]

function attachmentOf({ flags, attachments = [], ...message }: DiscordMessage): string | undefined {
	if ((flags ?? 0) & MessageFlags.IsVoiceMessage) return 'a voice message'
	if (attachments.length > 0) {
		const [, one, many] = kinds.find(([type]) => attachments.every((file) => type.test(file.content_type ?? ''))) ?? []
		return attachments.length === 1 ? one : `${attachments.length} ${many}`
	}
	if (message.sticker_items?.length) return 'a sticker'
	if (message.poll) return 'a poll'
	if (message.message_snapshots?.length) return 'a forwarded message'
	return undefined
}

/** The limit of `IncomingFile.ref`. */
const URL_LIMIT = 4_096

/** No files if one of them is a video or has no valid address: then the message has only a description. */
function filesOf({ flags, attachments = [] }: DiscordMessage): { attachments?: IncomingFile[] } {
	const isVoice = ((flags ?? 0) & MessageFlags.IsVoiceMessage) !== 0
	const files = attachments.flatMap(({ filename, content_type = '', size, url, duration_secs }): IncomingFile[] => {
		if (typeof url !== 'string' || url === '' || url.length > URL_LIMIT || content_type.startsWith('video/')) return []
		const [, one = 'a file'] = kinds.find(([type]) => type.test(content_type)) ?? []
		return [
			{
				what: isVoice ? 'a voice message' : one,
				...(typeof filename === 'string' && { name: filename }),
				...(content_type !== '' && { media_type: content_type }),
				...(typeof size === 'number' && { size }),
				...(typeof duration_secs === 'number' && { seconds: duration_secs }),
				ref: url,
			},
		]
	})
	return files.length > 0 && files.length === attachments.length ? { attachments: files } : {}
}
