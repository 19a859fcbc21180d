/** The adapter on a link that a test made by hand. */
import Joi from 'joi'
import { pino } from 'pino'
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
import type { TelegramChat, TestTelegram } from '../../support/telegram.ts'

export interface Connected extends Connection {
	received: IncomingMessage[]
	statuses: string[]
	/** What `lost` heard. */
	lost: ChannelError[]
	link: Link<TelegramConfig>
	/** Settles once that many messages were received. */
	heard(count: number): Promise<IncomingMessage[]>
	/** Settles once a status or a loss was told whose text fits. */
	told(text: RegExp): Promise<void>
}

export interface ConnectOptions {
	token?: string
	api_root?: string
	cursor?: string
	chats?: KnownChat[]
	/** Before a message counts as received. */
	receive?(message: IncomingMessage): Promise<void> | void
}

const WAIT_LIMIT_MS = 60_000

export async function connect(
	t: Test,
	telegram: Pick<TestTelegram, 'url' | 'token'>,
	options: ConnectOptions = {},
): Promise<Connected> {
	const received: IncomingMessage[] = []
	const statuses: string[] = []
	const lost: ChannelError[] = []
	const looks = new Set<() => void>()
	const look = (): void => {
		for (const one of looks) one()
	}
	const ending = new AbortController()
	const { value: config } = adapter.config!(Joi).validate({ api_root: options.api_root ?? telegram.url })
	const link: Link<TelegramConfig> = {
		channel_id: 'c1',
		token: options.token ?? telegram.token,
		config,
		log: pino({ level: 'silent' }),
		signal: ending.signal,
		cursor: async () => options.cursor ?? null,
		advance: async () => {},
		chats: async () => options.chats ?? [],
		async receive(message) {
			await options.receive?.(message)
			received.push(message)
			look()
		},
		status(status, error = '') {
			statuses.push(`${status} ${error}`.trim())
			look()
		},
		lost(error) {
			lost.push(error as ChannelError)
			look()
		},
		error: (code, message, { retry_after_ms } = {}) =>
			Object.assign(new Error(message), { code, ...(retry_after_ms !== undefined && { retry_after_ms }) }),
	}
	const connection = await adapter.connect(link)
	let isClosed = false
	const close = async (): Promise<void> => {
		if (isClosed) return
		isClosed = true
		ending.abort()
		await connection.close()
	}
	t.teardown(close)
	const until = (is: () => boolean, what: () => unknown): Promise<void> => {
		const { promise, resolve, reject } = Promise.withResolvers<void>()
		const once = (): void => (is() ? resolve() : undefined)
		const timer = setTimeout(
			() => reject(new Error(`it did not come; there was ${JSON.stringify(what())}`)),
			WAIT_LIMIT_MS,
		)
		looks.add(once)
		once()
		return promise.finally(() => {
			clearTimeout(timer)
			looks.delete(once)
		})
	}
	return {
		...connection,
		close,
		link,
		received,
		statuses,
		lost,
		async heard(count) {
			await until(
				() => received.length >= count,
				() => received,
			)
			return received
		},
		told: (text) =>
			until(
				() => [...statuses, ...lost.map(({ message }) => message)].some((one) => text.test(one)),
				() => [statuses, lost.map(({ message }) => message)],
			),
	}
}

let nonces = 0

/** A message to a chat; in plain text where nothing else is said. */
export function outgoing(chat: TelegramChat, text: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage {
	const kind = chat.type === 'private' ? 'private' : 'group'
	const nonce = (nonces++).toString(36).padStart(25, '0')
	return { chat: { id: String(chat.id), kind }, text, markup: 'plain', nonce, ...more }
}
