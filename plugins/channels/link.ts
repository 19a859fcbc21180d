/** The link that a connection gets: it accepts incoming messages for as long as the connection lasts. */
import { Fault, messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/log/log.ts'
import type { SerialQueue } from '../../core/util/serial-queue.ts'
import type { ChannelError, ChannelErrorCode, Link, LinkStatus } from './adapter.ts'
import { codes } from './dialogue/thrown.ts'
import { readCursor, readMessage } from './messages.ts'
import type { Dialogue, LiveChannel } from './parts.ts'

export interface LinkOptions {
	channel: LiveChannel
	token: string
	log: Logger
	dialogue: Dialogue
	/** Messages of one channel are accepted one after another, whichever of its connections received them. */
	queue: SerialQueue
	status(status: LinkStatus, error: string | null): void
	lost(error: unknown): void
	/** An invalid message arrived and was skipped. */
	dropped(why: string): void
}

/** `end`: from then on the link does nothing. */
export function openLink(options: LinkOptions): { link: Link; end(): void } {
	const { channel, dialogue, queue } = options
	const ending = new AbortController()
	const { signal } = ending
	const check = (): void => {
		if (signal.aborted)
			throw new Fault('channel_unavailable', 'this connection has ended: leave the message with the platform')
	}
	const receive = async (given: unknown): Promise<void> => {
		check()
		let message
		try {
			message = readMessage(given)
		} catch (error) {
			// It would be invalid again, and must not delay those after it.
			return options.dropped(messageOf(error))
		}
		await queue.run(async () => {
			check()
			await dialogue.receive(channel, message)
		})
	}

	const advance = async (cursor: unknown): Promise<void> => {
		check()
		const place = readCursor(cursor)
		await queue.run(async () => {
			check()
			await dialogue.advance(channel.id, place)
		})
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
			receive(message) {
				const taken = receive(message)
				taken.catch(() => {}) // an adapter that ignores the error loses nothing: the platform delivers the message again
				return taken
			},
			advance(cursor) {
				const kept = advance(cursor)
				kept.catch(() => {}) // only the position is lost
				return kept
			},
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

function errorOf(
	code: ChannelErrorCode,
	message: string,
	{ cause, retry_after_ms }: { retry_after_ms?: number; cause?: unknown } = {},
): ChannelError {
	if (!codes.has(code)) throw new TypeError(`an error's code must be one of ${[...codes].join(', ')}`)
	const error = new Error(message, cause === undefined ? undefined : { cause })
	return Object.assign(error, { code, ...(retry_after_ms !== undefined && { retry_after_ms }) })
}
