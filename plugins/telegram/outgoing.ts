/** Outgoing messages: the Bot API's methods for a message, an edit, and a draft. */
import { hash } from 'node:crypto'
import { InputFile } from 'grammy'
import type { ChatRef, Link, OutgoingFile, OutgoingMessage } from '../channels/adapter.ts'
import type { BotApi } from './api.ts'
import { isNoPhoto, isUnchanged } from './errors.ts'
import { safeMarkdown } from './markdown.ts'

/** Returns the new message's id. */
export async function send(api: BotApi, message: OutgoingMessage): Promise<number> {
	const { chat_id, ...place } = placeOf(message.chat)
	const options = { ...place, ...replyOf(message) }
	const content = contentOf(message)
	const { message_id } =
		'rich' in content
			? await api.call.sendRichMessage(chat_id, content.rich, options)
			: await api.call.sendMessage(chat_id, content.text, { ...options, ...content.options })
	return message_id
}

const PHOTOS = new Set(['image/jpeg', 'image/png', 'image/webp'])
const PHOTO_BYTES = 10_000_000

/** Sends a file as a photo or a document. Returns the new message's id. */
export async function sendFile(api: BotApi, file: OutgoingFile, bytes: Uint8Array): Promise<number> {
	const { chat_id, ...place } = placeOf(file.chat)
	const options = { ...place, ...replyOf(file) }
	// grammY does not quote names. They never contain quotes.
	const input = new InputFile(bytes, `"${file.name}"`)
	if (PHOTOS.has(file.media_type) && bytes.length <= PHOTO_BYTES) {
		try {
			return (await api.call.sendPhoto(chat_id, input, options)).message_id
		} catch (error) {
			if (!isNoPhoto(error)) throw error
		}
	}
	return (await api.call.sendDocument(chat_id, input, options)).message_id
}

/** Sets the empty caption of a file again. Succeeds only if the message exists and is the bot's. */
export async function touchFile(api: BotApi, message_id: number, { chat }: Pick<OutgoingFile, 'chat'>): Promise<void> {
	try {
		await api.call.editMessageCaption(placeOf(chat).chat_id, message_id, { caption: '' })
	} catch (error) {
		if (!isUnchanged(error)) throw error
	}
}

/** Setting the same text again is not an error. */
export async function edit(api: BotApi, message_id: number, message: OutgoingMessage): Promise<void> {
	const { chat_id } = placeOf(message.chat)
	const content = contentOf(message)
	try {
		await ('rich' in content
			? api.call.editMessageText(chat_id, message_id, content.rich)
			: api.call.editMessageText(chat_id, message_id, content.text, content.options))
	} catch (error) {
		if (!isUnchanged(error)) throw error
	}
}

/** Shows a draft for 30 s, or until the message itself is sent, with a stop button. */
export async function draft(api: BotApi, message: OutgoingMessage): Promise<void> {
	const { chat_id, ...place } = placeOf(message.chat)
	const content = contentOf(message)
	const options = { ...place, can_stop: true }
	const draft_id = draftIdOf(message.nonce)
	await ('rich' in content
		? api.call.sendRichMessageDraft(chat_id, draft_id, content.rich, options)
		: api.call.sendMessageDraft(chat_id, draft_id, content.text, { ...options, ...parseModeOf(message) }))
}

export async function typing(api: BotApi, chat: ChatRef): Promise<void> {
	const { chat_id, ...place } = placeOf(chat)
	await api.call.sendChatAction(chat_id, 'typing', place)
}

/** Throws `refused` for ids that are invalid on Telegram, such as mistyped ones in a binding. */
export function checkChat(chat: ChatRef, { error }: Pick<Link, 'error'>): void {
	const isId = (id: string): boolean => Number.isSafeInteger(Number(id)) && Number(id) !== 0
	if (!isId(chat.id) || (chat.thread_id !== undefined && !isId(chat.thread_id)))
		throw error(
			'refused',
			`the chat id ${chat.id} is not a number, as ids on Telegram are; bind the id that /whoami shows`,
		)
}

function placeOf(chat: ChatRef): { chat_id: number; message_thread_id?: number } {
	return {
		chat_id: Number(chat.id),
		...(chat.thread_id !== undefined && { message_thread_id: Number(chat.thread_id) }),
	}
}

/** Sends the message even if the replied-to message was deleted. */
function replyOf({ reply_to }: Pick<OutgoingMessage, 'reply_to'>): {
	reply_parameters?: { message_id: number; allow_sending_without_reply: true }
} {
	const message_id = Number(reply_to)
	if (!Number.isSafeInteger(message_id) || message_id <= 0) return {}
	return { reply_parameters: { message_id, allow_sending_without_reply: true } }
}

type OutgoingContent =
	| { rich: { markdown: string } }
	| { text: string; options: { parse_mode?: 'HTML'; link_preview_options: { is_disabled: true } } }

/** Link previews are off, since Telegram's servers would fetch any address in a model's text. */
function contentOf(message: OutgoingMessage): OutgoingContent {
	const { text, markup } = message
	if (markup === 'markdown') return { rich: { markdown: safeMarkdown(text) } }
	return { text, options: { ...parseModeOf(message), link_preview_options: { is_disabled: true } } }
}

function parseModeOf({ markup }: OutgoingMessage): { parse_mode?: 'HTML' } {
	return markup === 'html' ? { parse_mode: 'HTML' } : {}
}

/** The same for all texts of one message, and never 0. */
function draftIdOf(nonce: string): number {
	return (hash('sha256', nonce, 'buffer').readUInt32BE() >>> 1) + 1
}
