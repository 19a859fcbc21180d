/** The runs whose answers chats wait for, and their current state. */
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

/** A run from its beginning until its answer was sent. */
export interface Followed {
	/** As it was when the run began; the stored record says what was sent since. */
	readonly reply: Readonly<Reply>
	/** The open question: its own, or one of a sub-agent that it waits for. */
	question: OpenQuestion | null
	/** Id of the last question that was sent to the chat: a message answers no other question. */
	said: string | null
	/** When, ISO 8601; '' if unknown. */
	said_at: string
	/** Set while a question is being sent; resolves once that has failed, or `said` is durable. */
	sendingQuestion: PromiseWithResolvers<void> | null
	/** Whether a model or a tool is working on it. */
	working: boolean
	/** When that began, on the clock of `performance`. */
	since: number
	/** The answer's text so far. */
	draft: string
	/** What it called so far, since it works. */
	progress: RunProgress
	/** The preview that the chat shows; undefined before the first one. */
	shown?: string
	/** No previews, since they failed in this chat. */
	plain: boolean
	/** An edit of its preview that took too long and may still succeed. */
	late?: Promise<unknown>
	/** It has ended, though its answer may not be sent yet. */
	over: boolean
	/** Stopped from the chat, which got a confirmation. */
	stopConfirmed: boolean
	/** It waits until its chat is free to send to. */
	queued: boolean
	/** The run and its reply are durable. Until then there is nothing to look up, and nothing is due. */
	isStored: boolean
	/** Marks it as working, if it was working when it was first followed. */
	resume(): void
}

export type FollowedRuns = ReturnType<typeof followRuns>

/** A conversation in a chat, or in a thread of it. */
export interface ConversationPlace {
	agent_uid: string
	channel_id: string
	chat: ChatRef
	conversation: string
}

export interface FollowHooks {
	/** There may be something to send. */
	due(run: Followed): void
	/** Its first event has arrived. */
	started(run: Followed): void
	working(run: Followed): void
}

/** Characters kept of an unfinished answer. */
const DRAFT_LIMIT = 16 * 1024

export function followRuns(ctx: Pick<Context, 'defer' | 'use'>, hooks: FollowHooks) {
	const runs = new Map<string, Followed & { stop(): void }>()
	const chats = new Map<string, Set<Followed>>()
	const working = new Set<Followed>()
	const counts = new Counts()
	ctx.defer(() => {
		for (const { stop } of runs.values()) stop()
	}, 'runs that are followed')

	const work = (run: Followed, isWorking: boolean): void => {
		run.working = isWorking && !run.reply.unasked
		if (!run.working) return void working.delete(run)
		working.add(run)
		run.since = performance.now()
		run.draft = ''
		run.progress = openProgress()
		hooks.working(run)
	}
	const waiting = new Set<() => void>()
	const isBusy = ({ agent_uid, channel_id, chat, conversation }: ConversationPlace): boolean =>
		[...(chats.get(keyOf(agent_uid, channel_id, chat)) ?? [])].some(
			({ over, reply }) => !over && !reply.unasked && reply.conversation === conversation,
		)
	const ended = (run: Followed): void => {
		run.over = true
		for (const look of waiting) look()
	}
	const handle = (run: Followed, { event_type, payload }: EventEnvelope): void => {
		switch (event_type) {
			case 'run.started':
				work(run, true)
				return hooks.started(run)
			case 'run.resumed':
				return work(run, true)
			case 'model.request':
				run.draft = ''
				return
			case 'model.stream':
				if (run.draft.length < DRAFT_LIMIT) run.draft += String(payload.content)
				return
			case 'run.paused':
				return work(run, false)
			case 'run.completed':
			case 'run.failed':
			case 'run.stopped':
				run.question = null
				work(run, false)
				ended(run)
				return hooks.due(run)
			default:
				run.progress.add({ payload })
		}
	}
	/** Open until it is answered, here or elsewhere. */
	const ask = (run: Followed, asked: OpenQuestion, withdrawn: AbortSignal): Promise<null> =>
		new Promise((resolve) => {
			run.question = asked
			hooks.due(run)
			const close = (): void => {
				if (run.question === asked) run.question = null
				resolve(null)
			}
			withdrawn.addEventListener('abort', close, { once: true })
		})
	/** `run`: known once `listener` is called. */
	const listenerOf = (run: () => Followed | undefined, stop: AbortController): RunListener => ({
		signal: stop.signal,
		event(event) {
			const one = run()
			if (one) handle(one, event)
		},
		ask: async (asked, withdrawn) => {
			const one = run()
			return one ? ask(one, asked, withdrawn) : null
		},
	})
	const add = (reply: Reply, stop: AbortController, isStored: boolean): Followed => {
		const { run_id, channel_id } = reply
		const run: Followed = {
			reply,
			question: null,
			said: reply.said ?? null,
			said_at: reply.said_at ?? '',
			sendingQuestion: null,
			working: false,
			since: 0,
			draft: '',
			progress: openProgress(),
			plain: false,
			over: false,
			stopConfirmed: false,
			queued: false,
			isStored,
			resume: () => work(run, true),
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
		working.delete(run)
		ended(run)
		const { agent_uid, channel_id, chat } = run.reply
		const place = keyOf(agent_uid, channel_id, chat)
		const others = chats.get(place)
		others?.delete(run)
		if (others?.size === 0) chats.delete(place)
		counts.add(channel_id, -1)
	}
	return {
		/**
		 * Follows the run that `begin` starts, which must call `follow` before anything can happen in it. Throws what `begin`
		 * throws; then the run is not followed.
		 */
		async start(begin: (listener: RunListener, follow: (reply: Reply) => void) => Promise<unknown>): Promise<void> {
			let run: Followed | undefined
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
		/** Follows a run that exists, unless it is followed already. A run that was deleted has no events. */
		async follow(reply: Reply): Promise<Followed> {
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
		all: (): Iterable<Followed> => runs.values(),
		working: (): Iterable<Followed> => working,
		/** The runs of an agent in a chat, or in a thread of it, oldest first. */
		inChat: (uid: string, channel_id: string, chat: ChatRef): Followed[] => [
			...(chats.get(keyOf(uid, channel_id, chat)) ?? []),
		],
		/** Number of runs of a channel. */
		count: (channel_id: string): number => counts.of(channel_id),
		/** Whether a run that a message of the conversation started is not over. */
		isBusy,
		/** The run was found to be over. */
		ended,
		/** Settles once the conversation is not busy, or `signal` aborts. */
		async idle(place: ConversationPlace, signal: AbortSignal): Promise<void> {
			const { promise, resolve } = Promise.withResolvers<void>()
			const look = (): void => {
				if (signal.aborted || !isBusy(place)) resolve()
			}
			waiting.add(look)
			const stay = onAbort(signal, look)
			look()
			await promise
			stay()
			waiting.delete(look)
		},
	}
}

function keyOf(agent_uid: string, channel_id: string, { id, thread_id = '' }: ChatRef): string {
	return JSON.stringify([agent_uid, channel_id, id, thread_id])
}
