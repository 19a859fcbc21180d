import { BoundedMap } from '../../core/util/bounded-map.ts'
import { MessageFlags, Routes } from 'discord.js'
import type { Client, RawFile, RESTPatchAPIChannelMessageJSONBody, RESTPostAPIChannelMessageJSONBody } from 'discord.js'
import type { ChatRef, Connection, OutgoingFile, OutgoingMessage } from '../channels/adapter.ts'
import { dialectOf, literalOf } from './dialect.ts'
import type { DiscordMessage } from './incoming.ts'
import { byAge, isSnowflake, snowflakeAt, timeOf } from './snowflake.ts'

/** A model's text never notifies users. */
const allowed_mentions = { parse: [], replied_user: false }
/** Number of chats whose newest message is tracked. */
const CACHE_LIMIT = 1_000
/** Maximum clock difference between this machine and Discord, and between Discord's servers. */
const SKEW_MS = 10_000
const SERVER_SKEW_MS = 2_000
const PAGE = 100
const MAX_LENGTH = 2000

/** Requests that write. `inChat` makes each of them, and converts the errors of discord.js. */
export function outgoingOf(client: Client, inChat: <T>(chat: ChatRef, request: () => Promise<T>) => Promise<T>) {
	const { rest } = client
	/** By chat, the one with the newest message last. */
	const newest = new BoundedMap<string, string>(CACHE_LIMIT)
	let newestOfAll: string | undefined

	/** To be called with every message, including those of others. */
	const saw = (chat_id: string, id: string): void => {
		if (!isSnowflake(id)) return
		const before = newest.get(chat_id)
		newest.set(chat_id, before !== undefined && byAge(before, id) > 0 ? before : id)
		if (newestOfAll === undefined || byAge(newestOfAll, id) < 0) newestOfAll = id
	}
	const post = (
		{ chat, reply_to, nonce }: Pick<OutgoingMessage, 'chat' | 'reply_to' | 'nonce'>,
		content: Pick<RESTPostAPIChannelMessageJSONBody, 'content' | 'flags'>,
		files: RawFile[] = [],
	): Promise<{ id: string }> =>
		inChat(chat, async () => {
			const body: RESTPostAPIChannelMessageJSONBody = {
				...content,
				nonce,
				enforce_nonce: true,
				allowed_mentions,
				...(reply_to !== undefined && { message_reference: { message_id: reply_to, fail_if_not_exists: false } }),
			}
			const { id } = (await rest.post(Routes.channelMessages(chat.id), { body, files })) as DiscordMessage
			if (!isSnowflake(id)) throw new Error('Discord answered without the id of the message')
			saw(chat.id, id)
			return { id }
		})
	/** The first of the bot's own messages after the mark for which `is` returns true. */
	const findAfter = (mark: string, chat: ChatRef, is: (one: DiscordMessage) => boolean) =>
		inChat(chat, async () => {
			const query = new URLSearchParams({ after: mark, limit: String(PAGE) })
			const messages = (await rest.get(Routes.channelMessages(chat.id), { query })) as DiscordMessage[]
			const found = messages.find((one) => one?.author?.id === client.user?.id && is(one))
			return found && { id: found.id }
		})
	const sender = {
		send: (message) => post(message, { content: contentOf(message), flags: MessageFlags.SuppressEmbeds }),
		sendFile: (file, bytes) =>
			post(file, {}, [{ data: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), name: file.name }]),
		edit: (id, message) =>
			inChat(message.chat, async () => {
				const body: RESTPatchAPIChannelMessageJSONBody = { content: contentOf(message), allowed_mentions }
				await rest.patch(Routes.channelMessage(message.chat.id, id), { body })
			}),
		typing: (chat) =>
			inChat(chat, async () => {
				await rest.post(Routes.channelTyping(chat.id))
			}),
		mark(chat) {
			const last = newest.get(chat.id)
			if (last !== undefined) return last
			if (newestOfAll !== undefined) return snowflakeAt(timeOf(newestOfAll) - SERVER_SKEW_MS)
			return snowflakeAt(Date.now() - SKEW_MS)
		},
		/**
		 * For some minutes, Discord creates only one message for all requests with the same nonce. After that, this searches the bot's
		 * messages after the mark. A chat gets one message at a time, so one with the same text is the message.
		 */
		async find(message, mark) {
			return isSnowflake(mark) ? findAfter(mark, message.chat, (one) => isSame(one, message)) : undefined
		},
		async findFile(file, mark) {
			if (!isSnowflake(mark)) return undefined
			// Another file of the same answer may have the same size.
			const { after } = file
			const from = isSnowflake(after) && byAge(mark, after) < 0 ? after : mark
			return findAfter(from, file.chat, (one) => isSameFile(one, file))
		},
	} satisfies Partial<Connection>
	return { saw, sender }
}

function isSame({ nonce, content, message_reference }: DiscordMessage, message: OutgoingMessage): boolean {
	if (nonce !== undefined) return nonce === message.nonce
	// Discord removes the reference to a deleted message.
	const isReply = message_reference === undefined || message_reference.message_id === message.reply_to
	return isReply && visible(String(content ?? '')) === visible(contentOf(message))
}

/** Compares sizes, since Discord may change the name. */
function isSameFile({ nonce, content, attachments = [] }: DiscordMessage, file: OutgoingFile): boolean {
	if (nonce !== undefined) return nonce === file.nonce
	return (content ?? '') === '' && attachments.length === 1 && attachments[0]?.size === file.size
}

/** Discord removes white space at both ends, and invisible characters. */
function visible(text: string): string {
	return text.replaceAll(/[\s\p{C}]+/gu, '')
}

function contentOf({ text, markup }: OutgoingMessage): string {
	return markup === 'markdown' ? dialectOf(text, MAX_LENGTH) : literalOf(text, MAX_LENGTH)
}
