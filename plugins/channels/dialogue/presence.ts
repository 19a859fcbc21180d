/**
 * Shows that a run is at work: typing, and its answer in the making. Never in the way of what is to be said: it is shown
 * only where the chat is free, and what fails is left.
 */
import type { Context } from '../../../core/plugin.ts'
import type { ChannelError, ChannelErrorCode, OutgoingMessage } from '../adapter.ts'
import type { Followed, FollowedRuns } from './followed.ts'
import type { Lanes } from './lanes.ts'
import type { Line } from './lines.ts'
import { nextPart } from './part.ts'
import { nonceOf } from './records.ts'
import { Gone, openReply } from './reply.ts'
import type { OpenReply } from './reply.ts'
import type { Way } from './transmit.ts'

const TICK_MS = 250
/** Who has an answer by then needs no sign of typing, and no preview. */
const TYPING_AFTER_MS = 250
const PREVIEW_AFTER_MS = 1_000
/** Least time between two previews in a chat. */
const PREVIEW_MS = 1_000
/** A sign of typing is renewed a bit before it fades. */
const TYPING_PART = 0.8

/** Chats of which it is remembered what they were shown. */
const CHAT_LIMIT = 10_000

/** Errors that say for sure that nothing was sent. */
const NOT_SENT: ReadonlySet<unknown> = new Set<ChannelErrorCode>(['format', 'limited', 'failed', 'refused'])

interface Shown {
	typing: number
	preview: number
}

/** The name of a chat's lane. */
export function laneOf(channel_id: string, chat_id: string): string {
	return `${channel_id} ${chat_id}`
}

export function showPresence(way: Way & { ctx: Context }, lanes: Lanes, runs: FollowedRuns): { wake(): void } {
	const { ctx, lines } = way
	/** When each chat was shown something last. */
	const shown = new Map<string, Shown>()
	let timer: NodeJS.Timeout | undefined
	ctx.defer(() => clearInterval(timer), 'signs of typing')

	const tick = (): void => {
		let any = false
		for (const run of runs.working()) {
			any = true
			show(run)
		}
		if (any) return
		clearInterval(timer)
		timer = undefined
		shown.clear()
	}
	return {
		wake() {
			if (timer === undefined && !ctx.signal.aborted) timer = setInterval(tick, TICK_MS).unref()
		},
	}

	function show(run: Followed): void {
		const { channel_id, chat } = run.reply
		const line = lines.now(channel_id)
		if (!line) return
		const lane = laneOf(channel_id, chat.id)
		const now = performance.now()
		const last = shown.get(lane) ?? { typing: -Infinity, preview: -Infinity }
		if (shown.size > CHAT_LIMIT) shown.clear() // some are shown typing a bit early
		shown.set(lane, last)
		const mode = line.channel.can.preview?.[chat.kind]
		const isNew = run.draft.trim() !== '' && now >= run.since + PREVIEW_AFTER_MS && now >= last.preview + PREVIEW_MS
		if (mode && !run.plain && isNew) {
			const isTaken = lanes.offer(lane, () => attempt(run, () => preview(way, line, run, mode)))
			if (isTaken) last.preview = now
			return
		}
		const { typing_ms } = line.channel.can
		const { connection } = line
		if (typing_ms === undefined || !connection.typing) return
		if (now < run.since + TYPING_AFTER_MS || now < last.typing + typing_ms * TYPING_PART) return
		const type = async (): Promise<void> => {
			if (run.working) await lines.call(channel_id, async () => connection.typing?.(chat))
		}
		if (lanes.offer(lane, () => type().catch(() => {}))) last.typing = now
	}

	async function attempt(run: Followed, work: () => Promise<void>): Promise<void> {
		try {
			if (run.working && !ctx.signal.aborted) await work()
		} catch (error) {
			if (error instanceof Gone) return
			const { code, retry_after_ms = PREVIEW_MS } = error as Partial<ChannelError>
			const { channel_id, chat } = run.reply
			const channel = lines.now(channel_id)?.channel
			if (code === 'limited' && channel) way.pace.hold(channel, chat, retry_after_ms)
			else run.plain = true
			ctx.log.debug({ channel_id, err: error }, 'a preview could not be shown')
		}
	}
}

async function preview(way: Way & { ctx: Context }, line: Line, run: Followed, mode: 'draft' | 'edit'): Promise<void> {
	const { ctx } = way
	const { chat, run_id, reply_to } = run.reply
	const { channel, connection } = line
	const format = channel.can.formats[0]
	if (!format) return
	const source = ctx.redactor.text(run.draft.toWellFormed(), 'message')
	const { text } = await nextPart(source, { offset: 0, fence: null }, format)
	if (text === '' || text === run.shown) return
	const { markup, max_length } = format
	const nonce = nonceOf(`${run_id} preview`, 0)
	const message: OutgoingMessage = { chat, ...(chat.kind === 'group' && { reply_to }), text, markup, nonce }
	if (mode === 'draft') {
		await way.lines.call(channel.id, async () => connection.draft?.(message))
	} else {
		if (!connection.edit) return
		const record = await openReply(ctx, run.reply)
		if (!record || record.value.saying || !run.working || !way.pace.takeNow(channel, chat)) return
		const { asked } = record.value
		await grow(way, line, record, { ...message, nonce: nonceOf(`${run_id} preview`, asked.length) }, max_length)
	}
	run.shown = text
}

/** The message that becomes the answer: sent once, then edited. */
async function grow(
	way: Way,
	{ channel, connection }: Line,
	record: OpenReply,
	message: OutgoingMessage,
	max_length: number,
): Promise<void> {
	const { preview } = record.value
	if (preview) {
		const { id, nonce } = preview
		if (id !== null) await way.lines.call(channel.id, async () => connection.edit?.(id, { ...message, nonce }))
		return
	}
	const { text, markup, nonce } = message
	const mark = connection.mark?.(message.chat)
	const sent = { nonce, text, markup, max_length, ...(mark !== undefined && { mark }) }
	await record.change({ preview: { ...sent, id: null } })
	let id: string
	try {
		id = String((await way.lines.call(channel.id, () => connection.send(message))).id)
	} catch (error) {
		if (NOT_SENT.has((error as Partial<ChannelError>).code)) await record.change({ preview: null })
		throw error
	}
	await record.change({ preview: { ...sent, id } }, { sent_id: id })
}
