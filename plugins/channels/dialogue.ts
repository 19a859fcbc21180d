/** The dialogue with chats: receives messages, starts runs, and sends their answers. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../../core/plugin.ts'
import type { RunRecord } from '../runs/contract.ts'
import type { ChannelSettings } from './contract.ts'
import { deliver } from './dialogue/deliver.ts'
import { destinationsOf } from './dialogue/destinations.ts'
import { followRuns } from './dialogue/followed.ts'
import type { FollowedRun } from './dialogue/followed.ts'
import { receive } from './dialogue/intake.ts'
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
import { reportReceived, reportUnsent } from './dialogue/report.ts'
import { openSessions } from './dialogue/sessions.ts'
import { texts } from './dialogue/texts.ts'
import type { Dialogue } from './parts.ts'
import type { Registry } from './registry.ts'

const DAY_MS = 24 * 3_600_000
const PRUNE_MS = 6 * 3_600_000
/**
 * Intervals at which all runs are checked: the first, doubled each time up to the longest. No event reports the end of a run that
 * was written just before a crash.
 */
const FIRST_CHECK_MS = 250
const CHECK_MS = 60_000
/** Delay before a retry, such as while the store is unavailable. */
const RETRY_MS = 5_000

export function openDialogue(ctx: Context<ChannelSettings>, registry: Registry): Dialogue {
	const { store, log, signal } = ctx
	const queues = ctx.own(openChatQueues(log), 'messages being sent to chats')
	const pace = openPace()
	const platforms = openPlatforms(registry, signal)
	const sessions = openSessions(ctx)
	const runs = followRuns(ctx, {
		due: (run) => queueDelivery(run),
		started({ reply }) {
			for (const id of [...(reply.merged ?? []), reply.reply_to])
				if (id !== undefined) void reportReceived(ctx, reply, id)
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
	ctx.extend('destination', destinationsOf(deps, catchUp))

	/** Queues the delivery of what is due, after earlier messages of the chat. */
	function queueDelivery(run: FollowedRun): void {
		if (run.isQueued || signal.aborted) return
		run.isQueued = true
		const { channel_id, chat, run_id } = run.reply
		queues.push(chatKey(channel_id, chat.id), async () => {
			run.isQueued = false
			if (signal.aborted) return
			try {
				for (const earlier of withEarlier(run)) if (await deliver(deps, earlier)) runs.forget(earlier.reply.run_id)
			} catch (error) {
				if (signal.aborted) return
				log.error({ err: error, run_id, channel_id }, 'an answer could not be sent to its chat; this will be retried')
				void sleep(RETRY_MS, undefined, { signal, ref: false }).then(
					() => queueDelivery(run),
					() => {},
				)
			}
		})
	}

	/** Sends the open question again if the chat did not get it. Queued, so that nothing else changes the record meanwhile. */
	function resendQuestion(run: FollowedRun): void {
		const { question_id } = run.question ?? {}
		if (question_id === undefined || run.said === question_id) return
		const { channel_id, chat } = run.reply
		queues.push(chatKey(channel_id, chat.id), async () => {
			const record = await openReply(ctx, run.reply)
			if (!record?.value.asked.includes(question_id) || run.said === question_id) return
			await record.change({ asked: record.value.asked.filter((id) => id !== question_id) })
			queueDelivery(run)
		})
	}

	/** The run, after the earlier ones of its conversation: they have ended, but after a crash no event may have said so. */
	function withEarlier(run: FollowedRun): FollowedRun[] {
		const { agent_uid, channel_id, chat, conversation } = run.reply
		const all = runs.inChat(agent_uid, channel_id, chat).filter(({ reply }) => reply.conversation === conversation)
		const at = all.indexOf(run)
		return at < 0 ? [run] : all.slice(0, at + 1)
	}

	/** Queues what is due of a run that may have paused or ended without an event. */
	async function checkRun(run: FollowedRun): Promise<RunRecord | undefined> {
		const record = await ctx.use('runs').find(run.reply.run_id)
		const asked = record && (await ctx.use('runs').asked(record))
		if (asked) run.question = asked
		if (!record || record.ended_at !== null) runs.ended(run)
		if (!record || record.ended_at !== null || asked) queueDelivery(run)
		return record
	}
	/** Brings the state of a run up to date that was not followed from its start. */
	async function catchUp(run: FollowedRun): Promise<void> {
		// The question may already have been sent. That is known only after the next attempt.
		if (run.reply.saying && run.reply.saying.what !== 'answer') run.sendingQuestion ??= Promise.withResolvers()
		if ((await checkRun(run))?.status === 'started') run.resume()
	}
	async function checkAllRuns(): Promise<void> {
		for (const run of runs.all()) {
			if (signal.aborted) return
			if (run.isStored && !run.isQueued) await checkRun(run)
		}
	}
	async function load(): Promise<void> {
		for await (const { uid } of ctx.use('agents').list()) {
			for await (const { value } of store.list<Reply>(keys.all(uid, 'reply'))) {
				if (signal.aborted) return
				await catchUp(await runs.follow(value))
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
		while (!(await load().then(() => true, failed))) await sleep(RETRY_MS, undefined, { signal, ref: false })
		void watch().catch(() => {})
	}
	async function watch(): Promise<never> {
		for (let delay = FIRST_CHECK_MS; ; delay = Math.min(delay * 2, CHECK_MS)) {
			await sleep(delay, undefined, { signal, ref: false })
			await checkAllRuns().catch(failed)
		}
	}
	// Incoming messages wait for this, since one may answer a question that was asked before the start.
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
		await marks.storeCursors()
	})

	return {
		connected: platforms.connected,
		say: sayIn(deps),
		async receive(channel, message) {
			await loaded
			await receive({ ...deps, notices, pending, resendQuestion }, channel, message)
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
				if (reply.unasked) await reportUnsent(ctx, reply, 'deleted', 'the channel was deleted')
				runs.forget(reply.run_id)
			}
			pending.forget({ channel_id })
			await marks.forget(channel_id)
		},
	}
}
