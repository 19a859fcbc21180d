/** The link of a connection: accepts incoming messages until the connection ends. */
import { Fault, messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/log/log.ts'
import type { SerialQueue } from '../../core/util/serial-queue.ts'
import type { ChannelError, ChannelErrorCode, Link, LinkStatus } from './adapter.ts'
import { errorCodes } from './dialogue/adapter-values.ts'
import { readCursor, readMessage } from './messages.ts'
import type { Dialogue, LiveChannel } from './parts.ts'

export interface LinkOptions {
	channel: LiveChannel
	token: string
	log: Logger
	dialogue: Dialogue
	/** Accepts the messages of one channel one after another, across its connections. */
	queue: SerialQueue
	status(status: LinkStatus, error: string | null): void
	lost(error: unknown): void
	/** An invalid message arrived and was skipped. */
	skipped(why: string): void
}

/** After `end`, the link does nothing. */
export function openLink(options: LinkOptions): { link: Link; end(): void } {
	const { channel, dialogue, queue } = options
	const ending = new AbortController()
	const { signal } = ending
	const check = (): void => {
		if (signal.aborted)
			throw new Fault('channel_unavailable', 'this connection has ended: leave the message with the platform')
	}
	const inOrder = (accept: () => Promise<void>): Promise<void> =>
		queue.run(() => {
			check()
			return accept()
		})
	const receive = async (given: unknown): Promise<void> => {
		check()
		let message
		try {
			message = readMessage(given)
		} catch (error) {
			// It would be invalid again, and must not block later messages.
			return options.skipped(messageOf(error))
		}
		await inOrder(() => dialogue.receive(channel, message))
	}
	const advance = async (cursor: unknown): Promise<void> => {
		check()
		const position = readCursor(cursor)
		await inOrder(() => dialogue.advance(channel.id, position))
	}

	return {
		link: {
			channel_id: channel.id,
			token: options.token,
			config: channel.config as Record<string, unknown>,
			log: options.log,
			signal,
			async cursor() {
				check()
				return dialogue.cursor(channel.id)
			},
			async chats() {
				check()
				return dialogue.chats(channel.id)
			},
			receive: (message) => mayBeIgnored(receive(message)),
			advance: (cursor) => mayBeIgnored(advance(cursor)),
			status(status, error) {
				if (signal.aborted || (status !== 'connected' && status !== 'reconnecting')) return
				options.status(status, error === undefined ? null : String(error))
			},
			lost(error) {
				if (!signal.aborted) options.lost(error)
			},
			error: errorOf,
		},
		end: () => ending.abort(),
	}
}

/** An adapter may ignore the error: the platform delivers the message again, or only the position is lost. */
function mayBeIgnored(work: Promise<void>): Promise<void> {
	work.catch(() => {})
	return work
}

function errorOf(
	code: ChannelErrorCode,
	message: string,
	{ cause, retry_after_ms }: { retry_after_ms?: number; cause?: unknown } = {},
): ChannelError {
	if (!errorCodes.has(code)) throw new TypeError(`an error's code must be one of ${[...errorCodes].join(', ')}`)
	const error = new Error(message, cause === undefined ? undefined : { cause })
	return Object.assign(error, { code, ...(retry_after_ms !== undefined && { retry_after_ms }) })
}
