/** The runs whose answers are owed to chats, as they stand now. */
import { isFault, messageOf } from '../../../core/errors.ts'
import type { Context } from '../../../core/plugin.ts'
import type { EventEnvelope } from '../../../core/store/ports.ts'
import type { Asked } from '../../runs/contract.ts'
import type { ChatRef } from '../adapter.ts'
import type { Reply } from './records.ts'

/** A run from its beginning until its answer was said. */
export interface Followed {
	/** As it was at the beginning; what has been said since stands in the record. */
	readonly reply: Readonly<Reply>
	/** Open now: one of its own, or of a sub-agent that it waits for. */
	question: Asked | null
	/** Id of the last question that was said: only then is a message an answer to it. */
	said: string | null
	/** The call that says a question is under way; resolves once it has failed, or `said` is durable. */
	telling: PromiseWithResolvers<void> | null
	/** Is a model, or a tool, at work on it? */
	working: boolean
	/** When that began, on the clock of `performance`. */
	since: number
	/** The answer in the making. */
	draft: string
	/** The preview that shows; undefined before there is one. */
	shown?: string
	/** No previews: they do not work here. */
	plain: boolean
	/** An edit of its preview that took too long, and may still come to something. */
	late?: Promise<unknown>
	/** Who stopped it was told so. */
	hushed: boolean
	/** Its turn to be said something of has not come yet. */
	queued: boolean
	/** It was at work already when it was first followed. */
	resume(): void
}

export interface FollowedRuns {
	follow(reply: Reply): Followed
	get(run_id: string): Followed | undefined
	forget(run_id: string): void
	all(): Iterable<Followed>
	working(): Iterable<Followed>
	/** The runs of an agent in a chat, or in a thread of it, oldest first. */
	inChat(agent_uid: string, channel_id: string, chat: ChatRef): Followed[]
	/** How many of a channel. */
	count(channel_id: string): number
}

export interface Hears {
	/** Something may be due to be said. */
	due(run: Followed): void
	/** Its first event has come. */
	started(run: Followed): void
	working(run: Followed): void
}

/** Characters of an answer in the making that are kept. */
const DRAFT_LIMIT = 16 * 1024

export function followRuns(ctx: Pick<Context, 'events' | 'defer' | 'use'>, hears: Hears): FollowedRuns {
	const runs = new Map<string, Followed & { stop(): void }>()
	const chats = new Map<string, Set<Followed>>()
	const working = new Set<Followed>()
	const counts = new Map<string, number>()
	ctx.defer(() => {
		for (const { stop } of runs.values()) stop()
	}, 'runs that are followed')

	const work = (run: Followed, isWorking: boolean): void => {
		run.working = isWorking
		if (!isWorking) return void working.delete(run)
		working.add(run)
		run.since = performance.now()
		run.draft = ''
		hears.working(run)
	}
	const hear = (run: Followed, { event_type, payload }: EventEnvelope): void => {
		switch (event_type) {
			case 'run.started':
				work(run, true)
				return hears.started(run)
			case 'run.resumed':
				run.question = null
				return work(run, true)
			case 'model.request':
				run.draft = ''
				return
			case 'model.stream':
				if (run.draft.length < DRAFT_LIMIT) run.draft += String(payload.content)
				return
			case 'question.asked':
				run.question = { ...(payload as unknown as Omit<Asked, 'run_id'>), run_id: run.reply.run_id }
				work(run, false)
				return hears.due(run)
			case 'question.answered':
				run.question = null
				return
			case 'run.paused':
				return work(run, false)
			case 'run.completed':
			case 'run.failed':
			case 'run.stopped':
				run.question = null
				work(run, false)
				return hears.due(run)
		}
	}
	const hearBelow = (run: Followed, asked: Asked | null): void => {
		if (asked) {
			run.question = asked
			hears.due(run)
		} else if (run.question?.run_id !== run.reply.run_id) run.question = null
	}
	return {
		follow(reply) {
			const { run_id, channel_id } = reply
			const before = runs.get(run_id)
			if (before) return before
			const run: Followed = {
				reply,
				question: null,
				said: reply.said ?? null,
				telling: null,
				working: false,
				since: 0,
				draft: '',
				plain: false,
				hushed: false,
				queued: false,
				resume: () => work(run, true),
			}
			const stops = [
				ctx.events.subscribe({ run_id }, ({ event }) => hear(run, event)),
				ctx.use('runs').watchAsked(run_id, (asked) => hearBelow(run, asked)),
			]
			runs.set(run_id, Object.assign(run, { stop: () => stops.forEach((stop) => stop()) }))
			const place = placeOf(reply.agent_uid, channel_id, reply.chat)
			chats.set(place, (chats.get(place) ?? new Set()).add(run))
			counts.set(channel_id, (counts.get(channel_id) ?? 0) + 1)
			return run
		},
		get: (run_id) => runs.get(run_id),
		forget(run_id) {
			const run = runs.get(run_id)
			if (!run) return
			run.stop()
			runs.delete(run_id)
			working.delete(run)
			const place = placeOf(run.reply.agent_uid, run.reply.channel_id, run.reply.chat)
			const others = chats.get(place)
			others?.delete(run)
			if (others?.size === 0) chats.delete(place)
			const { channel_id } = run.reply
			const count = (counts.get(channel_id) ?? 1) - 1
			if (count === 0) counts.delete(channel_id)
			else counts.set(channel_id, count)
		},
		all: () => runs.values(),
		working: () => working,
		inChat: (uid, channel_id, chat) => [...(chats.get(placeOf(uid, channel_id, chat)) ?? [])],
		count: (channel_id) => counts.get(channel_id) ?? 0,
	}
}

function placeOf(agent_uid: string, channel_id: string, { id, thread_id = '' }: ChatRef): string {
	return JSON.stringify([agent_uid, channel_id, id, thread_id])
}

/** The run as it stands; undefined where it is gone. Throws nothing else than the store does. */
export async function runOf(ctx: Pick<Context, 'use'>, run_id: string) {
	try {
		return await ctx.use('runs').get(run_id)
	} catch (error) {
		if (isFault(error, 'not_found')) return undefined
		throw new Error(`run ${run_id}: ${messageOf(error)}`, { cause: error })
	}
}
