/**
 * Sends one message despite lost connections, lost responses, rate limits and rejected formats.
 *
 * Each attempt is stored before it is made. If its outcome is unknown, the platform is searched for the message (`find`), or the
 * message is sent again with the same nonce.
 */
import { isDeepStrictEqual } from 'node:util'
import { defined } from '../../../core/util/defined.ts'
import type { ChatKind, ChatRef, Format, OutgoingMessage } from '../adapter.ts'
import type { DialogueDeps } from './deps.ts'
import type { ConnectedChannel } from './platforms.ts'
import { nextPart } from './part.ts'
import type { Attempt, Preview } from './records.ts'
import type { MessagePart, SplitPosition } from './split.ts'
import { idOf, markOf, readAdapterError } from './adapter-values.ts'
import type { AdapterError } from './adapter-values.ts'

export interface TransmitOptions {
	channel_id: string
	chat: ChatRef & { kind: ChatKind }
	reply_to?: string
	/** See `OutgoingMessage.after`. */
	after?: string
	/** Not used for a message that replaces a preview, which has its own nonce. */
	nonce: string
	/** Markdown; the part that begins at `place` is sent. */
	source: string
	place: SplitPosition
	/** The format of an earlier attempt with an unknown outcome. */
	attempt: Attempt | null
	/** The preview that the message replaces. */
	preview: Preview | null
	/** Deadline, in ms since 1970. */
	until: number
	/** Low priority: sent only while no other message waits. */
	isHint?: boolean
	/** Called with true when a call that sends the message starts, and with false when an attempt has failed. */
	calling?(isStarted: boolean): void
	/** Called when the preview was edited to the final text, with a function that repeats the edit. */
	edited?(repeat: () => Promise<void>): void
	/** Stores the attempt before it is made. If it throws, sending ends with that error. */
	persist(attempt: Attempt | null, preview: Preview | null): Promise<void>
}

export type SendOutcome =
	| { status: 'sent'; id: string; next: SplitPosition }
	/** The platform will never accept it. */
	| { status: 'refused'; message: string }
	/** The channel was deleted, or the message could not be sent before the deadline. `message`: the error of the last attempt. */
	| { status: 'late'; message?: string }
	/** Only white space remained. */
	| { status: 'nothing' }

export type Failure = Exclude<SendOutcome, { status: 'sent' } | { status: 'nothing' }>

export type SendDeps = Pick<DialogueDeps, 'ctx' | 'platforms' | 'pace'>

const FIRST_DELAY_MS = 500
const MAX_DELAY_MS = 60_000
const MIN_WAIT_MS = 50
/** Operators see a message that waits at least this long for its next attempt. */
const LONG_WAIT_MS = 8_000

/** Throws what `persist` throws, and the reason of the instance's signal. */
export async function transmit(deps: SendDeps, options: TransmitOptions): Promise<SendOutcome> {
	const { ctx, platforms, pace } = deps
	const { channel_id, chat, until } = options
	let { attempt, preview } = options
	let isUnknown = attempt !== null
	let format = 0
	/** The part for the current format, reused by further attempts. */
	let cached: { format: Format; part: MessagePart } | undefined
	using retries = openRetries(deps, options, 'a message')

	for (;;) {
		const connected = await platforms.open(channel_id, until)
		if (!connected) return retries.late()
		const { formats } = connected.channel.can
		const chosen = stillAccepted(formats, attempt) ?? formats[format]
		if (!chosen) return { status: 'refused', message: 'the platform rejects every format of its adapter' }
		if (!cached || !isDeepStrictEqual(cached.format, chosen))
			cached = { format: chosen, part: await nextPart(options.source, options.place, chosen) }
		const { part } = cached
		if (part.text === '') return { status: 'nothing' }
		try {
			return { status: 'sent', id: idOf(await sendOnce(connected, chosen, part)), next: part.next }
		} catch (error) {
			const thrown = adapterErrorOf(error, ctx.signal)
			const { code, message } = thrown
			options.calling?.(false)
			switch (code) {
				case 'format':
					ctx.log.debug(
						{ channel_id, reason: message },
						`a message is sent in a different format than ${chosen.markup}`,
					)
					format = formats.findIndex(({ markup }) => markup === chosen.markup) + 1
					attempt = null
					isUnknown = false
					if (format >= formats.length) return { status: 'refused', message }
					continue
				case 'refused':
					// The connection is refused, such as for a revoked token, and not the message.
					if (platforms.hasEnded(channel_id, connected)) continue
					if (!preview) return { status: 'refused', message }
					preview = null // it was deleted
					continue
				case undefined:
					isUnknown = true
			}
			await retries.wait(thrown, connected)
		}
	}

	/** One attempt, or the result of an earlier one. */
	async function sendOnce(
		{ channel, connection }: ConnectedChannel,
		format: Format,
		part: MessagePart,
	): Promise<{ id: string }> {
		const message = outgoing(part.text, format.markup)
		if (preview && preview.id === null) await findPreview({ channel, connection }, message)
		if (preview?.id && connection.edit) {
			const { id } = preview
			const edit = (): Promise<void> => platforms.call(channel_id, async () => connection.edit?.(id, message))
			await pace.take(channel, chat, ctx.signal)
			options.calling?.(true)
			await edit()
			options.edited?.(edit)
			return { id }
		}
		if (isUnknown && connection.find) {
			const mark = attempt?.mark
			const found = await platforms.call(channel_id, async () => connection.find?.(message, mark))
			if (found) return found
			isUnknown = false
		}
		await (options.isHint ? pace.takeLast(channel, chat, ctx.signal) : pace.take(channel, chat, ctx.signal))
		// Each attempt gets a new mark, since `find` searches only a short range after it.
		const mark = markOf(connection, chat, ctx.log)
		if (!attempt || attempt.mark !== mark) {
			attempt = { ...limitsOf(format), ...(mark !== undefined && { mark }) }
			await persisted(options.persist(attempt, preview))
		}
		options.calling?.(true)
		return platforms.call(channel_id, () => connection.send(message))
	}

	/** Sets the id of the preview. Without `find`, sends it again: with the same nonce the platform returns the same message. */
	async function findPreview({ channel, connection }: ConnectedChannel, message: OutgoingMessage): Promise<void> {
		if (!preview) return
		const { text, markup, mark } = preview
		if (connection.find) {
			const found = await platforms.call(channel_id, async () => connection.find?.({ ...message, text, markup }, mark))
			preview = found ? { ...preview, id: found.id } : null
		} else {
			await pace.take(channel, chat, ctx.signal)
			const { id } = await platforms.call(channel_id, () => connection.send(message))
			preview = { ...preview, id }
		}
		await persisted(options.persist(attempt, preview))
	}

	function outgoing(text: string, markup: Format['markup']): OutgoingMessage {
		const { reply_to, after, nonce } = options
		return { chat, ...defined({ reply_to, after }), text, markup, nonce: preview?.nonce ?? nonce }
	}
}

class NotPersisted extends Error {}

/** Wraps an error of `persist`, to distinguish it from errors of the platform. */
export async function persisted(work: Promise<void>): Promise<void> {
	try {
		await work
	} catch (error) {
		throw new NotPersisted('the attempt could not be stored', { cause: error })
	}
}

/** The platform's error of a failed attempt. Throws if sending must end: after an error of `persist`, or when the signal aborts. */
export function adapterErrorOf(error: unknown, signal: AbortSignal): AdapterError {
	if (error instanceof NotPersisted) throw error.cause
	signal.throwIfAborted()
	return readAdapterError(error)
}

/** Retries of one message. `what`: names the content in the log. */
export function openRetries(
	{ ctx: { log }, platforms }: Pick<SendDeps, 'ctx' | 'platforms'>,
	{ channel_id, until }: Pick<TransmitOptions, 'channel_id' | 'until'>,
	what: string,
) {
	let delay = FIRST_DELAY_MS
	let reason: string | undefined
	let isReported = false
	const message = {}
	return {
		/**
		 * Waits before a retry: for the time that the platform requested, or with exponential backoff. A new token is tried at
		 * once.
		 */
		async wait(thrown: AdapterError, connected: ConnectedChannel): Promise<void> {
			reason = thrown.message
			let ms = delay
			if (thrown.code === 'limited')
				// Not beyond the deadline.
				ms = Math.max(MIN_WAIT_MS, Math.min(thrown.retry_after_ms || FIRST_DELAY_MS, until - Date.now()))
			else delay = Math.min(delay * 2, MAX_DELAY_MS)
			log.info({ channel_id, reason }, `${what} could not be sent; retrying in ${ms} ms`)
			if (ms >= LONG_WAIT_MS) {
				isReported = true
				platforms.delayed(channel_id, message, reason)
			}
			await platforms.pause(channel_id, ms, connected)
		},
		/** The outcome of a message that was not sent before its deadline. */
		late: (): { status: 'late'; message?: string } => ({ status: 'late', ...defined({ message: reason }) }),
		[Symbol.dispose](): void {
			if (isReported) platforms.delayed(channel_id, message, null)
		},
	}
}

/** The format of an earlier attempt, if the platform still accepts it. Only the same format produces the same part. */
function stillAccepted(formats: readonly Format[], attempt: Attempt | null): Format | undefined {
	if (!attempt) return undefined
	const { markup, max_length, max_bytes = Infinity } = attempt
	const accepts = (format: Format): boolean =>
		format.markup === markup && format.max_length >= max_length && (format.max_bytes ?? Infinity) >= max_bytes
	return formats.some(accepts) ? limitsOf(attempt) : undefined
}

/** The fields of a format that determine a part. */
export function limitsOf({ markup, max_length, max_bytes }: Format): Format {
	return { markup, max_length, ...(max_bytes !== undefined && { max_bytes }) }
}
