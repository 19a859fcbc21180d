/** The adapter, connected to a link of the test instead of a gateway's. */
import Joi from 'joi'
import type { Test } from 'tap'
import type {
	ChannelError,
	Connection,
	IncomingMessage,
	KnownChat,
	Link,
	OutgoingMessage,
} from '../../../plugins/channels/adapter.ts'
import { telegram as adapter } from '../../../plugins/telegram/index.ts'
import type { TelegramConfig } from '../../../plugins/telegram/config.ts'
import { testLink } from '../../support/channel-link.ts'
import type { TelegramChat, TestTelegram } from '../../support/telegram.ts'
import { eventually } from '../../support/wait.ts'

export interface Connected extends Connection {
	received: IncomingMessage[]
	statuses: string[]
	/** The errors passed to `lost`. */
	lost: ChannelError[]
	link: Link<TelegramConfig>
	/** Waits for at least `count` messages, and returns them all. */
	receives(count: number): Promise<IncomingMessage[]>
	/** Waits until the adapter reports a status or a loss with this text. */
	reports(text: RegExp): Promise<unknown>
}

export interface ConnectOptions {
	token?: string
	api_root?: string
	cursor?: string
	chats?: KnownChat[]
	/** Called before a message counts as received. */
	receive?(message: IncomingMessage): Promise<void> | void
}

export async function connect(
	t: Test,
	telegram: Pick<TestTelegram, 'url' | 'token'>,
	options: ConnectOptions = {},
): Promise<Connected> {
	const { cursor = null, chats: known = [], receive: gate = () => {} } = options
	const { value: config } = adapter.config!(Joi).validate({ api_root: options.api_root ?? telegram.url })
	const link = Object.assign(testLink<TelegramConfig>(options.token ?? telegram.token, config), {
		cursor: async () => cursor,
		known,
		gate,
	})
	const { received, statuses, losses: lost } = link
	const connection = await adapter.connect(link)
	let isClosed = false
	const close = async (): Promise<void> => {
		if (isClosed) return
		isClosed = true
		link.abort()
		await connection.close()
	}
	t.teardown(close)

	return {
		...connection,
		close,
		link,
		received,
		statuses,
		lost,
		receives: (count) =>
			eventually(
				() => received,
				({ length }) => length >= count,
			),
		reports: (text) =>
			eventually(
				() => [...statuses, ...lost.map(({ message }) => message)],
				(reports) => reports.some((report) => text.test(report)),
			),
	}
}

let nonces = 0

/** A message to a chat, by default in plain text. */
export function outgoing(chat: TelegramChat, text: string, fields: Partial<OutgoingMessage> = {}): OutgoingMessage {
	const kind = chat.type === 'private' ? 'private' : 'group'
	const nonce = (nonces++).toString(36).padStart(25, '0')
	return { chat: { id: String(chat.id), kind }, text, markup: 'plain', nonce, ...fields }
}
