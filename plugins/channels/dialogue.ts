/** The dialogue with chats: receives messages, starts runs, and sends their answers. parts.ts describes the other half. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../../core/plugin.ts'
import type { RunRecord } from '../runs/contract.ts'
import type { ChannelSettings } from './contract.ts'
import { deliver } from './dialogue/deliver.ts'
import { destinationsOf } from './dialogue/destinations.ts'
import { followRuns } from './dialogue/followed.ts'
import type { Followed } from './dialogue/followed.ts'
import { receive, reportReceived } from './dialogue/intake.ts'
import { chatKey, openChatQueues } from './dialogue/chat-queues.ts'
import { openPlatforms } from './dialogue/platforms.ts'
import { openMarks } from './dialogue/marks.ts'
import { openNotices } from './dialogue/notices.ts'
import { openPace } from './dialogue/pace.ts'
import { openPending } from './dialogue/pending.ts'
import { showPresence } from './dialogue/presence.ts'
import { keys } from './dialogue/records.ts'
import type { Reply } from './dialogue/records.ts'
import { openReply } from './dialogue/reply.ts'
import { sayIn } from './dialogue/say.ts'
import { reportUndelivered } from './dialogue/report.ts'
import { openSessions } from './dialogue/sessions.ts'
import { texts } from './dialogue/texts.ts'
import type { Dialogue } from './parts.ts'
import type { Registry } from './registry.ts'

const DAY_MS = 24 * 3_600_000
const PRUNE_MS = 6 * 3_600_000
/**
 * The runs are checked again, soon after the start and at intervals: the end of a run that was written just before a crash
 * is not reported again.
 */
const FIRST_LOOK_MS = 250
const LOOK_MS = 60_000
/** Delay before a failed attempt to send is retried, such as while the store was unavailable. */
const AGAIN_MS = 5_000

export function openDialogue(ctx: Context<ChannelSettings>, registry: Registry): Dialogue {
	const { store, log, signal } = ctx
	const queues = ctx.own(openChatQueues(log), 'messages on their way to chats')
	const pace = openPace()
	const platforms = openPlatforms(registry, signal)
	const sessions = openSessions(ctx)
	const runs = followRuns(ctx, {
		due: (run) => speak(run),
		started({ reply }) {
			for (const id of [...(reply.merged ?? []), reply.reply_to]) if (id !== undefined) reportReceived(ctx, reply, id)
		},
		working: () => presence.wake(),
	})
	const presence = showPresence({ ctx, platforms, pace }, queues, runs)
	const notices = openNotices({ ctx, platforms, pace }, queues)
	const marks = openMarks(ctx, registry)
	const pending = ctx.own(
		openPending({ ctx, registry, runs, notices, platforms }),
		'messages that wait for their files',
	)
	const deps = { ctx, registry, platforms, pace, marks, sessions, runs }
	ctx.extend('destination', destinationsOf(deps, begin))

	/** Sends what is due, once everything before it in this chat was sent. */
	function speak(run: Followed): void {
		if (run.queued || signal.aborted) return
		run.queued = true
		const { channel_id, chat, run_id } = run.reply
		queues.push(chatKey(channel_id, chat.id), async () => {
			run.queued = false
			if (signal.aborted) return
			try {
				for (const one of upTo(run)) if (await deliver(deps, one)) runs.forget(one.reply.run_id)
			} catch (error) {
				if (signal.aborted) return
				log.error({ err: error, run_id, channel_id }, 'an answer could not be sent to its chat; this will be retried')
				void sleep(AGAIN_MS, undefined, { signal, ref: false }).then(
					() => speak(run),
					() => {},
				)
			}
		})
	}

	/** Within the queue, so that nothing else changes the record meanwhile. */
	function askAgain(run: Followed): void {
		const { question_id } = run.question ?? {}
		if (question_id === undefined || run.said === question_id) return
		const { channel_id, chat } = run.reply
		queues.push(chatKey(channel_id, chat.id), async () => {
			const record = await openReply(ctx, run.reply)
			if (!record?.value.asked.includes(question_id) || run.said === question_id) return
			await record.change({ asked: record.value.asked.filter((id) => id !== question_id) })
			speak(run)
		})
	}

	/**
	 * The run, after the earlier ones of its conversation: those have ended already, and an end that was written just before a
	 * crash may not have been reported.
	 */
	function upTo(run: Followed): Followed[] {
		const { agent_uid, channel_id, chat, conversation } = run.reply
		const all = runs.inChat(agent_uid, channel_id, chat).filter(({ reply }) => reply.conversation === conversation)
		const at = all.indexOf(run)
		return at < 0 ? [run] : all.slice(0, at + 1)
	}

	/** Sends what is due of a run that may have continued or ended without a listener. */
	async function sendDue(run: Followed): Promise<RunRecord | undefined> {
		const record = await ctx.use('runs').find(run.reply.run_id)
		const asked = record && (await ctx.use('runs').asked(record))
		if (asked) run.question = asked
		if (!record || record.ended_at !== null) runs.ended(run)
		if (!record || record.ended_at !== null || asked) speak(run)
		return record
	}
	/** A run that is followed only now may already be working. */
	async function begin(run: Followed): Promise<void> {
		// The chat may have seen this question: whether it was sent is known only after sending was tried again.
		if (run.reply.saying && run.reply.saying.what !== 'answer') run.sendingQuestion ??= Promise.withResolvers()
		if ((await sendDue(run))?.status === 'started') run.resume()
	}
	async function sendAllDue(): Promise<void> {
		for (const run of runs.all()) {
			if (signal.aborted) return
			if (run.isStored && !run.queued) await sendDue(run)
		}
	}
	async function load(): Promise<void> {
		for await (const { uid } of ctx.use('agents').list()) {
			for await (const { value } of store.list<Reply>(keys.replies(uid))) {
				if (signal.aborted) return
				await begin(await runs.follow(value))
			}
		}
		await pending.load()
	}
	const failed = (error: unknown): false => {
		if (!signal.aborted) log.error({ err: error }, 'the pending answers to chats could not be checked')
		return false
	}
	async function loadAndWatch(): Promise<void> {
		await ctx.serving
		while (!(await load().then(() => true, failed))) await sleep(AGAIN_MS, undefined, { signal, ref: false })
		void watch().catch(() => {})
	}
	async function watch(): Promise<never> {
		for (let delay = FIRST_LOOK_MS; ; delay = Math.min(delay * 2, LOOK_MS)) {
			await sleep(delay, undefined, { signal, ref: false })
			await sendAllDue().catch(failed)
		}
	}
	// Incoming messages wait for this: one may answer a question that was asked before the start.
	const loaded = loadAndWatch()
	loaded.catch(() => {})

	const prune = async (): Promise<void> => {
		const before = new Date(Date.now() - ctx.config.retention_days * DAY_MS).toISOString()
		await marks.prune(before)
		await sessions.prune(before)
	}
	ctx.every(PRUNE_MS, prune)

	ctx.on('agent.deleted', async ({ payload }) => {
		for (const { reply } of runs.all()) if (reply.agent_uid === payload.uid) runs.forget(reply.run_id)
		pending.forget({ agent_uid: String(payload.uid) })
		await marks.keepCursors()
	})

	return {
		connected: platforms.connected,
		say: sayIn(deps),
		async receive(channel, message) {
			await loaded
			await receive({ ...deps, notices, pending, askAgain }, channel, message)
		},
		advance: (channel_id, cursor) => marks.advance(channel_id, cursor),
		cursor: (channel_id) => marks.cursor(channel_id),
		chats: (channel_id) => marks.chats(channel_id),
		async paired(channel_id, chat, agent_id) {
			const kind = await marks.kindOf(channel_id, chat.id)
			notices.say(channel_id, { ...chat, kind }, texts.paired(agent_id))
		},
		async forget(channel_id) {
			platforms.forget(channel_id)
			for (const { reply } of runs.all()) {
				if (reply.channel_id !== channel_id) continue
				if (reply.unasked) await reportUndelivered(ctx, reply, 'deleted', 'the channel was deleted')
				runs.forget(reply.run_id)
			}
			pending.forget({ channel_id })
			await marks.forget(channel_id)
		},
	}
}
