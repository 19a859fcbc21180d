/** The connection of one bot. */
import type { Update } from 'grammy/types'
import { messageOf } from '../../core/errors.ts'
import type {
	ChatRef,
	Connection,
	IncomingMessage,
	Link,
	Markup,
	OutgoingFile,
	OutgoingMessage,
} from '../channels/adapter.ts'
import { joinParts } from './albums.ts'
import { openApi } from './api.ts'
import type { OptionalMethod } from './api.ts'
import { errorOf, isCode, connectionErrorOf } from './errors.ts'
import { openFeed } from './feed.ts'
import { openFind } from './find.ts'
import { commands, incomingOf } from './incoming.ts'
import { openMarks } from './marks.ts'
import * as outgoing from './outgoing.ts'
import type { TelegramConfig } from './config.ts'

export async function connect(link: Link<TelegramConfig>): Promise<Connection> {
	await using resources = new AsyncDisposableStack()
	const api = resources.use(openApi(link))
	const me = await api.call.getMe(link.signal as Parameters<typeof api.call.getMe>[0]).catch((error: unknown) => {
		throw connectionErrorOf(error, link)
	})
	const marks = openMarks(await link.chats())
	const find = openFind<OutgoingMessage>((id, message) => outgoing.edit(api, id, message), marks)
	const findFile = openFind<OutgoingFile>((id, file) => outgoing.touchFile(api, id, file), marks)

	async function take(updates: readonly Update[]): Promise<void> {
		for (const incoming of joinParts(updates.flatMap((update) => read(update) ?? []))) await link.receive(incoming)
	}

	/** Skips an unreadable update: it would be unreadable again, and block all later ones. */
	function read(update: Update): IncomingMessage | undefined {
		try {
			const { message } = update
			if (message) marks.saw(message.chat.id, message.message_id)
			if (message?.migrate_to_chat_id !== undefined)
				link.log.warn(`group ${message.chat.id} became supergroup ${message.migrate_to_chat_id}: bind that one`)
			return incomingOf(update, me)
		} catch (error) {
			link.log.warn(`update ${update.update_id} was skipped, since it cannot be read: ${messageOf(error)}`)
			return undefined
		}
	}

	/** Converts errors to those of an adapter, whose code says whether the message was sent. */
	async function inChat<T>({ chat, markup }: { chat: ChatRef; markup?: Markup }, work: () => Promise<T>): Promise<T> {
		outgoing.checkChat(chat, link)
		try {
			return await work()
		} catch (error) {
			const failure = errorOf(error, link, markup)
			if (isCode(error, 401)) link.lost(failure)
			throw failure
		}
	}

	/** Throws if the server does not support the method, before anything is sent. */
	async function prepare({ markup }: OutgoingMessage, method: OptionalMethod | undefined): Promise<void> {
		if (method === undefined || (await api.supports(method))) return
		if (markup === 'markdown') throw link.error('format', 'this Bot API server does not support rich messages')
		throw link.error('refused', 'this Bot API server does not support drafts')
	}

	const richMethod = ({ markup }: OutgoingMessage) => (markup === 'markdown' ? 'sendRichMessage' : undefined)
	const draftMethod = ({ markup }: OutgoingMessage) =>
		markup === 'markdown' ? 'sendRichMessageDraft' : 'sendMessageDraft'

	// Not awaited, since the command menu is optional.
	api.call.setMyCommands(commands).catch((error: unknown) => {
		link.log.debug(`the command menu was not set: ${messageOf(errorOf(error, link))}`)
	})
	resources.use(await openFeed(api, link, take))
	const open = resources.move()
	return {
		name: `@${me.username}`,
		send: (message) =>
			inChat(message, async () => {
				await prepare(message, richMethod(message))
				const id = await outgoing.send(api, message)
				marks.saw(message.chat.id, id)
				return { id: String(id) }
			}),
		edit: (id, message) =>
			inChat(message, async () => {
				await prepare(message, richMethod(message))
				await outgoing.edit(api, Number(id), message)
			}),
		draft: (message) =>
			inChat(message, async () => {
				await prepare(message, draftMethod(message))
				await outgoing.draft(api, message)
			}),
		typing: (chat) =>
			inChat({ chat }, async () => {
				if (await api.supports('sendChatAction')) await outgoing.typing(api, chat)
			}),
		mark: (chat) => marks.mark(chat.id),
		find: (message, mark) =>
			inChat(message, async () => {
				await prepare(message, richMethod(message))
				return find(message, mark)
			}),
		sendFile: (file, bytes) =>
			inChat(file, async () => {
				if (!(await api.supports('sendDocument')))
					throw link.error('refused', 'this Bot API server does not support files')
				const id = await outgoing.sendFile(api, file, bytes)
				marks.saw(file.chat.id, id)
				return { id: String(id) }
			}),
		findFile: (file, mark) => inChat(file, () => findFile(file, mark)),
		load: api.download,
		close: () => open.disposeAsync(),
	}
}
