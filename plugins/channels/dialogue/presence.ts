/**
 * Shows that a run is working, by a typing indicator and a preview of its answer. Never delays messages: both are skipped if the
 * chat is busy, and failures are ignored.
 */
import { namesHidden } from '../../../core/redactor/redactor.ts'
import { BoundedMap } from '../../../core/util/bounded-map.ts'
import { onAbort } from '../../../core/util/on-abort.ts'
import type { Format, OutgoingMessage } from '../adapter.ts'
import type { FollowedRun, FollowedRuns } from './followed.ts'
import { chatKey } from './chat-queues.ts'
import type { ChatQueues } from './chat-queues.ts'
import type { ConnectedChannel } from './platforms.ts'
import { HOLD_LIMIT_MS } from './pace.ts'
import { nextPart } from './part.ts'
import { progressText } from './progress.ts'
import { nonceOf } from './records.ts'
import { Gone, openReply } from './reply.ts'
import type { OpenReply } from './reply.ts'
import { withNewlines } from './texts.ts'
import { markOf, readAdapterError } from './adapter-values.ts'
import { limitsOf } from './transmit.ts'
import type { SendDeps } from './transmit.ts'

const TICK_MS = 250
/** Delays after which a run shows a typing indicator, a preview, and its tool calls. */
const TYPING_AFTER_MS = 250
const PREVIEW_AFTER_MS = 1_000
const PROGRESS_AFTER_MS = 3_000
/** Minimum interval between previews in a chat. */
const PREVIEW_MS = 1_000
/** A typing indicator is renewed after this share of its duration. */
const TYPING_SHARE = 0.8

/** Limit of chats whose indicators are tracked. */
const CHAT_LIMIT = 10_000

/** How long a due message waits for a running preview. */
const YIELD_MS = 1_000

interface ShownPresence {
	/** When the typing indicator was last shown, by `performance.now()`. */
	typing: number
	/** The call that shows the typing indicator is still running. */
	isTyping: boolean
	/** When a preview was last shown. */
	preview: number
}

export function showPresence(deps: SendDeps, queues: ChatQueues, runs: FollowedRuns): { wake(): void } {
	const { ctx, platforms } = deps
	/** By chat. */
	const shown = new BoundedMap<string, ShownPresence>(CHAT_LIMIT)
	let stopTicking: (() => void) | undefined

	const tick = (): void => {
		let hasWork = false
		for (const run of runs.all()) {
			if (!run.working) continue
			hasWork = true
			show(run)
		}
		if (hasWork) return
		stopTicking?.()
		stopTicking = undefined
		shown.clear()
	}
	return {
		wake() {
			stopTicking ??= ctx.every(TICK_MS, tick)
		},
	}

	function show(run: FollowedRun): void {
		const { channel_id, chat } = run.reply
		const connected = platforms.now(channel_id)
		if (!connected) return
		const key = chatKey(channel_id, chat.id)
		const now = performance.now()
		const last = shown.get(key) ?? { typing: -Infinity, isTyping: false, preview: -Infinity }
		shown.set(key, last)
		const mode = connected.channel.can.preview?.[chat.kind]
		const isDue = now >= run.since + PREVIEW_AFTER_MS && now >= last.preview + PREVIEW_MS
		if (mode && !run.noPreviews && isDue && liveText(run, connected) !== '') {
			const isStarted = queues.offer(key, (yielding) =>
				attempt(run, () => preview(deps, connected, run, mode, yielding)),
			)
			if (isStarted) last.preview = now
			return
		}
		const { typing_ms } = connected.channel.can
		const { connection } = connected
		if (typing_ms === undefined || !connection.typing) return
		if (now < run.since + TYPING_AFTER_MS || now < last.typing + typing_ms * TYPING_SHARE) return
		if (last.isTyping || queues.length(key) > 0) return
		// Not queued, so that no message waits for it.
		const call = platforms.optionalCall(channel_id, async () => {
			try {
				last.isTyping = true
				await connection.typing?.(chat)
			} finally {
				last.isTyping = false
			}
		})
		if (call) last.typing = now
		call?.catch(() => {})
	}

	async function attempt(run: FollowedRun, work: () => Promise<void>): Promise<void> {
		try {
			if (run.working && !ctx.signal.aborted) await work()
		} catch (error) {
			if (error instanceof Gone) return
			const { code, message, retry_after_ms } = readAdapterError(error)
			const { channel_id, chat } = run.reply
			const channel = platforms.now(channel_id)?.channel
			if (code === 'limited' && channel) deps.pace.hold(channel, chat, retry_after_ms || PREVIEW_MS)
			if (code !== 'limited' || retry_after_ms > HOLD_LIMIT_MS) run.noPreviews = true
			ctx.log.debug({ channel_id, reason: message }, 'a preview could not be shown')
		}
	}
}

/** The answer so far and the running tool calls; '' if there is nothing to show yet. */
function liveText(run: FollowedRun, { channel }: ConnectedChannel): string {
	const { draft, progress, since } = run
	const answer = draft.trim() === '' ? '' : draft
	if (channel.config.progress === false || performance.now() < since + PROGRESS_AFTER_MS) return answer
	// A growing answer already shows that the run is working.
	if (answer !== '' && progress.running.size === 0) return answer
	return [answer, progressText(progress)].filter((part) => part !== '').join('\n\n')
}

async function preview(
	deps: SendDeps,
	connected: ConnectedChannel,
	run: FollowedRun,
	mode: 'draft' | 'edit',
	yielding: AbortSignal,
): Promise<void> {
	const { ctx } = deps
	const { chat, run_id, reply_to } = run.reply
	const { channel, connection } = connected
	const format = channel.can.formats[0]
	if (!format) return
	const source = namesHidden.text(withNewlines(liveText(run, connected)))
	const { text } = await nextPart(source, { offset: 0, fence: null }, format)
	if (text === '' || text === run.shown) return
	const { markup } = format
	const message: OutgoingMessage = {
		chat,
		...(chat.kind === 'group' && reply_to !== undefined && { reply_to }),
		text,
		markup,
		nonce: nonceOf(`${run_id} preview`, 0),
	}
	if (mode === 'draft') {
		if (!(await callBriefly(deps, channel.id, async () => connection.draft?.(message), yielding))) return
	} else {
		if (!connection.edit) return
		const record = await openReply(ctx, run.reply)
		if (!record || record.value.saying || !run.working || !deps.pace.takeNow(channel, chat)) return
		const { asked, preview } = record.value
		message.nonce = nonceOf(`${run_id} preview`, asked.length)
		if (!preview) await sendPreview(deps, connected, record, message, format)
		else if (preview.id !== null) {
			const { id, nonce } = preview
			const edit = async (): Promise<void> => {
				const call = Promise.resolve(connection.edit?.(id, { ...message, nonce }))
				const late = call.catch(() => {}).then(() => void (run.lateEdit === late && delete run.lateEdit))
				run.lateEdit = late
				return call
			}
			if (!(await callBriefly(deps, channel.id, edit, yielding))) return
		}
	}
	run.shown = text
}

/** Makes an optional call. Stops waiting 1 s after `yielding` aborts. Returns false if too many optional calls are running. */
async function callBriefly(
	deps: SendDeps,
	channel_id: string,
	make: () => Promise<void>,
	yielding: AbortSignal,
): Promise<boolean> {
	const call = deps.platforms.optionalCall(channel_id, make)
	if (!call) return false
	const { promise, reject } = Promise.withResolvers<never>()
	const removeListener = onAbort(yielding, () => {
		setTimeout(reject, YIELD_MS, new Error('a message is due in the chat')).unref()
	})
	try {
		await Promise.race([call, promise])
		return true
	} finally {
		removeListener()
		call.catch(() => {})
	}
}

/** Sends the message that is then edited until it becomes the answer. */
async function sendPreview(
	deps: SendDeps,
	{ channel, connection }: ConnectedChannel,
	record: OpenReply,
	message: OutgoingMessage,
	format: Format,
): Promise<void> {
	const { text, nonce } = message
	const mark = markOf(connection, message.chat, deps.ctx.log)
	const sent = { nonce, text, ...limitsOf(format), ...(mark !== undefined && { mark }) }
	await record.change({ preview: { ...sent, id: null } })
	let id: string
	try {
		id = String((await deps.platforms.call(channel.id, () => connection.send(message))).id)
	} catch (error) {
		if (readAdapterError(error).code) await record.change({ preview: null })
		throw error
	}
	await record.change({ preview: { ...sent, id } }, { sent_id: id })
}
