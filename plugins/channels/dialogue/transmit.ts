/**
 * Sends one message despite lost connections, lost responses, rate limits and formats that are not accepted.
 *
 * What is about to be sent is stored first. If it is unknown whether it was sent, the platform is asked (`find`), or
 * it is sent again with the same nonce.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../../../core/plugin.ts'
import type { ChatKind, ChatRef, Format, OutgoingMessage } from '../adapter.ts'
import type { ConnectedChannel, Platforms } from './platforms.ts'
import { markOf } from './mark.ts'
import type { Pace } from './pace.ts'
import { nextPart } from './part.ts'
import type { MessagePart } from './part.ts'
import type { Attempt, Preview } from './records.ts'
import type { SplitPosition } from './split.ts'
import { readThrown } from './thrown.ts'
import type { Thrown } from './thrown.ts'

export interface Order {
	channel_id: string
	chat: ChatRef & { kind: ChatKind }
	reply_to?: string
	/** As `OutgoingMessage.after`. */
	after?: string
	/** Unless it replaces a preview, which has its own. */
	nonce: string
	/** Markdown; the part that begins at `place` is sent. */
	source: string
	place: SplitPosition
	/** The format in which it may have been sent. */
	attempt: Attempt | null
	/** The message that this one replaces. */
	preview: Preview | null
	/** When it is too late, ms since 1970. */
	until: number
	/** Low priority: it is sent only if nothing else waits. */
	isHint?: boolean
	/** Called when a call that sends it begins, and when that call has failed. */
	calling?(isUnderWay: boolean): void
	/** Called when the preview became the message, with a function that ensures this again. */
	edited?(again: () => Promise<void>): void
	/** Makes durable what is about to be sent. What it throws ends the work. */
	remember(attempt: Attempt | null, preview: Preview | null): Promise<void>
}

export type SendOutcome =
	| { status: 'sent'; id: string; next: SplitPosition }
	/** The platform will never accept it. */
	| { status: 'refused'; message: string }
	/** The channel is gone, or was not connected in time. */
	| { status: 'late' }
	/** Only white space remained. */
	| { status: 'nothing' }

export type Failure = Exclude<SendOutcome, { status: 'sent' } | { status: 'nothing' }>

export interface SendDeps {
	ctx: Context
	platforms: Platforms
	pace: Pace
}

const FIRST_DELAY_MS = 500
const MAX_DELAY_MS = 60_000
const LEAST_WAIT_MS = 50
/** Characters of an id of the platform. */
const ID_LIMIT = 256

/** Throws what `remember` throws, and the reason of the instance's signal. */
export async function transmit(deps: SendDeps, order: Order): Promise<SendOutcome> {
	const { ctx, platforms, pace } = deps
	const { channel_id, chat, until } = order
	let { attempt, preview } = order
	let isUnknown = attempt !== null
	let format = 0
	/** The part made of the source, so that another attempt need not make it again. */
	let made: { format: Format; part: MessagePart } | undefined
	const pause = pausesOf(deps, order, 'a message')

	for (;;) {
		const connected = await platforms.open(channel_id, until)
		if (!connected) return { status: 'late' }
		const { formats } = connected.channel.can
		const chosen = offered(formats, attempt) ?? formats[format]
		if (!chosen) return { status: 'refused', message: 'the platform accepts none of the formats that its plugin names' }
		if (!made || !isSame(made.format, chosen))
			made = { format: chosen, part: await nextPart(order.source, order.place, chosen) }
		const { part } = made
		if (part.text === '') return { status: 'nothing' }
		try {
			return { status: 'sent', id: idOf(await sendOnce(connected, chosen, part)), next: part.next }
		} catch (error) {
			const thrown = thrownBy(error, ctx.signal)
			const { code, message } = thrown
			order.calling?.(false)
			switch (code) {
				case 'format':
					ctx.log.debug({ channel_id, reason: message }, `a message is sent in another format than ${chosen.markup}`)
					format = formats.findIndex(({ markup }) => markup === chosen.markup) + 1
					attempt = null
					isUnknown = false
					if (format >= formats.length) return { status: 'refused', message }
					continue
				case 'refused':
					if (!preview) return { status: 'refused', message }
					preview = null // it was deleted
					continue
				case undefined:
					isUnknown = true
			}
			await pause(thrown)
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
			order.calling?.(true)
			await edit()
			order.edited?.(edit)
			return { id }
		}
		if (isUnknown && connection.find) {
			const mark = attempt?.mark
			const found = await platforms.call(channel_id, async () => connection.find?.(message, mark))
			if (found) return found
			isUnknown = false
		}
		await (order.isHint ? pace.takeLast(channel, chat, ctx.signal) : pace.take(channel, chat, ctx.signal))
		// Each attempt has its own mark, since `find` does not search far beyond it.
		const mark = markOf(connection, chat, ctx.log)
		if (!attempt || attempt.mark !== mark) {
			attempt = { ...limitsOf(format), ...(mark !== undefined && { mark }) }
			await remembered(order.remember(attempt, preview))
		}
		order.calling?.(true)
		return platforms.call(channel_id, () => connection.send(message))
	}

	/** Was the preview sent? If the platform cannot say, it is sent again: the nonce makes the platform return the same message. */
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
		await remembered(order.remember(attempt, preview))
	}

	function outgoing(text: string, markup: Format['markup']): OutgoingMessage {
		const reply_to = order.reply_to === undefined ? {} : { reply_to: order.reply_to }
		const after = order.after === undefined ? {} : { after: order.after }
		return { chat, ...reply_to, ...after, text, markup, nonce: preview?.nonce ?? order.nonce }
	}
}

class NotRemembered extends Error {}

/** What `remember` of an order throws must not count as an error of the platform. */
export async function remembered(work: Promise<void>): Promise<void> {
	try {
		await work
	} catch (error) {
		throw new NotRemembered('not remembered', { cause: error })
	}
}

/** What an attempt threw. Throws what ends the work. */
export function thrownBy(error: unknown, signal: AbortSignal): Thrown {
	if (error instanceof NotRemembered) throw error.cause
	signal.throwIfAborted()
	return readThrown(error)
}

/** The id of a message that was sent. An adapter is third-party code. */
export function idOf(message: { id: string } | undefined): string {
	if (message === undefined)
		throw new Error('the adapter returned no message: send() and sendFile() must return { id }')
	return String(message.id).slice(0, ID_LIMIT)
}

function isSame(a: Format, b: Format): boolean {
	return a.markup === b.markup && a.max_length === b.max_length && a.max_bytes === b.max_bytes
}

/** Returns what waits after a failed attempt: as long as the platform wants, or longer each time. `what`: what is sent, for the log. */
export function pausesOf(
	{ ctx: { log, signal } }: Pick<SendDeps, 'ctx'>,
	{ channel_id, until }: Pick<Order, 'channel_id' | 'until'>,
	what: string,
): (thrown: Thrown) => Promise<void> {
	let delay = FIRST_DELAY_MS
	const pause = (ms: number): Promise<void> => sleep(ms, undefined, { signal, ref: false })
	return async ({ code, message, retry_after_ms }) => {
		// No longer than is useful.
		if (code === 'limited')
			return pause(Math.max(LEAST_WAIT_MS, Math.min(retry_after_ms || FIRST_DELAY_MS, until - Date.now())))
		log.info({ channel_id, reason: message }, `${what} could not be sent; it is tried again in ${delay} ms`)
		await pause(delay)
		delay = Math.min(delay * 2, MAX_DELAY_MS)
	}
}

/** The format of an earlier attempt, as long as the platform accepts it: only then the part is the same. */
function offered(formats: readonly Format[], attempt: Attempt | null): Format | undefined {
	if (!attempt) return undefined
	const { markup, max_length, max_bytes = Infinity } = attempt
	const takes = (one: Format): boolean =>
		one.markup === markup && one.max_length >= max_length && (one.max_bytes ?? Infinity) >= max_bytes
	return formats.some(takes) ? limitsOf(attempt) : undefined
}

/** What is needed to build the same part again. */
export function limitsOf({ markup, max_length, max_bytes }: Format): Format {
	return { markup, max_length, ...(max_bytes !== undefined && { max_bytes }) }
}
