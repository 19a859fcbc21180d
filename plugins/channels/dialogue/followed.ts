/** The runs whose answers go to chats, and their current state. */
import { isFault } from '../../../core/errors.ts'
import type { Context } from '../../../core/plugin.ts'
import type { EventEnvelope } from '../../../core/store/ports.ts'
import { onAbort } from '../../../core/util/on-abort.ts'
import type { OpenQuestion, RunListener } from '../../runs/contract.ts'
import type { ChatRef } from '../adapter.ts'
import { Counts } from '../../../core/util/counts.ts'
import { openProgress } from './progress.ts'
import type { RunProgress } from './progress.ts'
import type { Reply } from './records.ts'

/** The state of a run, from its start until its answer was sent. */
export interface FollowedRun {
	/** The record as it was at the start of the run. The stored one also tracks what was sent. */
	readonly reply: Readonly<Reply>
	/** The open question of the run, or of a sub-agent that it waits for. */
	question: OpenQuestion | null
	/** Id of the last question that was sent to the chat. Messages answer only this question. */
	said: string | null
	/** When `said` was sent, ISO 8601; '' if unknown. */
	said_at: string
	/** Set while a question is being sent. Resolves once `said` is durable, or sending has failed. */
	sendingQuestion: PromiseWithResolvers<void> | null
	/** Whether the run is executing, neither queued nor paused. */
	working: boolean
	/** When `working` became true, by `performance.now()`. */
	since: number
	/** The answer's text so far. */
	draft: string
	/** The tool calls since `working` became true. */
	progress: RunProgress
	/** The preview that the chat shows now; undefined before the first one. */
	shown?: string
	/** Previews failed in this chat, so no more are shown. */
	noPreviews: boolean
	/** An edit of the preview that timed out and may still succeed. */
	lateEdit?: Promise<unknown>
	/** The run has ended. Its answer may not be sent yet. */
	hasEnded: boolean
	/** The run was stopped by a command in the chat, which gets its own confirmation. */
	stopConfirmed: boolean
	/** Its delivery waits in the queue of the chat. */
	isQueued: boolean
	/** The run and its reply are durable. Until then nothing can be looked up, and nothing is due. */
	isStored: boolean
	/** Marks the run as working. For a run that was already executing when it was first followed. */
	resume(): void
}

export type FollowedRuns = ReturnType<typeof followRuns>

/** A conversation in a chat or thread. */
export interface ConversationPlace {
	agent_uid: string
	channel_id: string
	chat: ChatRef
	conversation: string
}

export interface FollowHooks {
	/** There may be something to deliver. */
	due(run: FollowedRun): void
	/** `run.started` was received. */
	started(run: FollowedRun): void
	working(run: FollowedRun): void
}

/** Limit of the draft, in characters. */
const DRAFT_LIMIT = 16 * 1024

export function followRuns(ctx: Pick<Context, 'defer' | 'use'>, hooks: FollowHooks) {
	const runs = new Map<string, FollowedRun & { stop(): void }>()
	const chats = new Map<string, Set<FollowedRun>>()
	const counts = new Counts()
	ctx.defer(() => {
		for (const { stop } of runs.values()) stop()
	}, 'runs that are followed')

	const setWorking = (run: FollowedRun, isWorking: boolean): void => {
		run.working = isWorking && !run.reply.unasked
		if (!run.working) return
		run.since = performance.now()
		run.draft = ''
		run.progress = openProgress()
		hooks.working(run)
	}
	/** Callbacks of `idle`, called when a run has ended. */
	const idleChecks = new Set<() => void>()
	const isBusy = ({ agent_uid, channel_id, chat, conversation }: ConversationPlace): boolean =>
		[...(chats.get(keyOf(agent_uid, channel_id, chat)) ?? [])].some(
			({ hasEnded, reply }) => !hasEnded && !reply.unasked && reply.conversation === conversation,
		)
	const ended = (run: FollowedRun): void => {
		run.hasEnded = true
		for (const check of idleChecks) check()
	}
	const handle = (run: FollowedRun, { event_type, payload }: EventEnvelope): void => {
		switch (event_type) {
			case 'run.started':
				setWorking(run, true)
				return hooks.started(run)
			case 'run.resumed':
				return setWorking(run, true)
			case 'model.request':
				run.draft = ''
				return
			case 'model.stream':
				if (run.draft.length < DRAFT_LIMIT) run.draft += String(payload.content)
				return
			case 'run.paused':
				return setWorking(run, false)
			case 'run.completed':
			case 'run.failed':
			case 'run.stopped':
				run.question = null
				setWorking(run, false)
				ended(run)
				return hooks.due(run)
			default:
				run.progress.add({ payload })
		}
	}
	/** The question stays open until it is answered or withdrawn, in the chat or elsewhere. */
	const ask = (run: FollowedRun, asked: OpenQuestion, withdrawn: AbortSignal): Promise<null> =>
		new Promise((resolve) => {
			run.question = asked
			hooks.due(run)
			const close = (): void => {
				if (run.question === asked) run.question = null
				resolve(null)
			}
			withdrawn.addEventListener('abort', close, { once: true })
		})
	/** `run` returns undefined until `follow` was called. */
	const listenerOf = (run: () => FollowedRun | undefined, stop: AbortController): RunListener => ({
		signal: stop.signal,
		event(event) {
			const followed = run()
			if (followed) handle(followed, event)
		},
		ask: async (asked, withdrawn) => {
			const followed = run()
			return followed ? ask(followed, asked, withdrawn) : null
		},
	})
	const add = (reply: Reply, stop: AbortController, isStored: boolean): FollowedRun => {
		const { run_id, channel_id } = reply
		const run: FollowedRun = {
			reply,
			question: null,
			said: reply.said ?? null,
			said_at: reply.said_at ?? '',
			sendingQuestion: null,
			working: false,
			since: 0,
			draft: '',
			progress: openProgress(),
			noPreviews: false,
			hasEnded: false,
			stopConfirmed: false,
			isQueued: false,
			isStored,
			resume: () => setWorking(run, true),
		}
		runs.set(run_id, Object.assign(run, { stop: () => stop.abort() }))
		const place = keyOf(reply.agent_uid, channel_id, reply.chat)
		chats.set(place, (chats.get(place) ?? new Set()).add(run))
		counts.add(channel_id)
		return run
	}
	const forget = (run_id: string): void => {
		const run = runs.get(run_id)
		if (!run) return
		run.stop()
		runs.delete(run_id)
		ended(run)
		const { agent_uid, channel_id, chat } = run.reply
		const place = keyOf(agent_uid, channel_id, chat)
		const inChat = chats.get(place)
		inChat?.delete(run)
		if (inChat?.size === 0) chats.delete(place)
		counts.add(channel_id, -1)
	}
	return {
		/**
		 * Follows the run that `begin` starts. `begin` must call `follow` before the run can emit events. If `begin` throws, the run
		 * is not followed and the error is rethrown.
		 */
		async start(begin: (listener: RunListener, follow: (reply: Reply) => void) => Promise<unknown>): Promise<void> {
			let run: FollowedRun | undefined
			const stop = new AbortController()
			try {
				const listener = listenerOf(() => run, stop)
				await begin(listener, (reply) => (run ??= add(reply, stop, false)))
				if (run) run.isStored = true
			} catch (error) {
				if (run) forget(run.reply.run_id)
				throw error
			}
		},
		/** Follows an existing run, unless it is already followed. A deleted run never emits events. */
		async follow(reply: Reply): Promise<FollowedRun> {
			const { run_id } = reply
			const before = runs.get(run_id)
			if (before) return before
			const stop = new AbortController()
			const run = add(reply, stop, true)
			const listener = listenerOf(() => run, stop)
			try {
				await ctx.use('runs').follow(run_id, listener)
			} catch (error) {
				if (isFault(error, 'not_found')) return run
				forget(run_id)
				throw error
			}
			return run
		},
		forget,
		all: (): Iterable<FollowedRun> => runs.values(),
		/** The runs of an agent in a chat or thread, oldest first. */
		inChat: (uid: string, channel_id: string, chat: ChatRef): FollowedRun[] => [
			...(chats.get(keyOf(uid, channel_id, chat)) ?? []),
		],
		/** Number of runs of a channel. */
		count: (channel_id: string): number => counts.of(channel_id),
		/** Whether a run that was started by a message of the conversation has not ended. */
		isBusy,
		/** Marks the run as ended. */
		ended,
		/** Settles once the conversation is not busy, or `signal` aborts. */
		async idle(place: ConversationPlace, signal: AbortSignal): Promise<void> {
			const { promise, resolve } = Promise.withResolvers<void>()
			const check = (): void => {
				if (signal.aborted || !isBusy(place)) resolve()
			}
			idleChecks.add(check)
			const removeListener = onAbort(signal, check)
			check()
			await promise
			removeListener()
			idleChecks.delete(check)
		},
	}
}

function keyOf(agent_uid: string, channel_id: string, { id, thread_id = '' }: ChatRef): string {
	return JSON.stringify([agent_uid, channel_id, id, thread_id])
}
