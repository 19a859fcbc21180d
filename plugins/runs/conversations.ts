/**
 * The conversations of an agent, by activity, and their turns. Both are computed from the runs when they are read: the position
 * of a conversation is that of its newest run. So no index must be updated when a run begins, ends or is deleted.
 */
import type { AgentRef } from '../../core/plugin.ts'
import type { Store } from '../../core/store/ports.ts'
import type { Message, RunRecord } from './contract.ts'
import {
	ANSWER_CHARACTERS,
	currentSession,
	firstOf,
	messagesOfRun,
	mustExist,
	newestFirst,
	newestTurns,
	runOf,
	noConversation,
	sizeOf,
} from './conversation.ts'
import { keys } from './keys.ts'

/** Runs read for one page of conversations. */
const LOOKED_AT = 5_000
/** Characters of the runs read for one page. */
const READ_CHARACTERS = 64 * 1024 * 1024
/** Triggers of runs of the gateway itself, for the agent's memory or an MCP server. Their conversations are not listed. */
const INTERNAL: readonly string[] = ['summary', 'compaction', 'sampling']

export interface Conversation {
	conversation: string
	/** It is the agent's current session. */
	is_session: boolean
	/** When its oldest run that is still kept was created; null if it has no run yet. */
	created_at: string | null
	newest_run: RunRecord | null
}

export interface Turn {
	run: RunRecord
	/** Oldest first: the prompt, and the answer if there is one. */
	messages: Message[]
}

/**
 * Conversations by their newest run, newest first: at most `limit` and about 8 Mi characters. One page reads at most 5,000 runs
 * or 64 Mi characters of runs. So a page may hold fewer than `limit` and still have a `next_cursor`, which is null only after the
 * last one. All pages use the order at the time of the first page: new runs cause neither repetitions nor omissions.
 */
export async function listConversations(
	store: Store,
	agent: AgentRef,
	{ limit, cursor }: { limit: number; cursor?: string },
): Promise<{ conversations: Conversation[]; next_cursor: string | null }> {
	const session = await currentSession(store, agent)
	const conversations: Conversation[] = []
	const passed = new Set<string>()
	let [last, top] = cursor?.split('.') ?? []
	let characters = 0
	let looked = 0
	let read = 0
	const after = last === undefined ? {} : { after: keys.run(agent.uid, last) }
	for await (const { value: run } of store.list<RunRecord>(keys.runs(agent.uid), { reverse: true, ...after })) {
		const { run_id, conversation, trigger } = run
		const next_cursor = `${last}.${top}`
		const isEnough = conversations.length === limit || looked++ === LOOKED_AT || read > READ_CHARACTERS
		if (isEnough) return { conversations, next_cursor }
		read += sizeOf(run)
		top ??= run_id
		if (!passed.has(conversation) && !INTERNAL.includes(trigger)) {
			// `before` is exclusive: `~` sorts after the run itself and before the next one.
			const newest = await firstOf(newestTurns(store, agent, conversation, `${top}~`))
			if (newest && runOf(newest) === run_id) {
				characters += sizeOf(run)
				if (characters > ANSWER_CHARACTERS && conversations.length > 0) return { conversations, next_cursor }
				const created_at = await createdAt(store, agent, conversation)
				conversations.push({ conversation, is_session: conversation === session, created_at, newest_run: run })
			}
			passed.add(conversation)
		}
		last = run_id
	}
	return { conversations, next_cursor: null }
}

/**
 * A conversation and a page of its turns, newest first: at most `limit`, and about 8 Mi characters. `before` is the
 * `next_cursor` of the previous page. Throws `not_found`.
 */
export async function readConversation(
	store: Store,
	agent: AgentRef,
	conversation: string,
	{ limit, before }: { limit: number; before?: string },
): Promise<Conversation & { turns: Turn[]; next_cursor: string | null }> {
	await mustExist(store, agent, conversation)
	const newest = (await firstOf(newestFirst(store, agent, conversation))) ?? null
	if (newest && INTERNAL.includes(newest.trigger)) throw noConversation(agent, conversation)
	const found: Conversation = {
		conversation,
		is_session: conversation === (await currentSession(store, agent)),
		created_at: await createdAt(store, agent, conversation),
		newest_run: newest,
	}
	const turns: Turn[] = []
	let later: RunRecord | undefined
	let characters = 0
	for await (const run of newestFirst(store, agent, conversation, before)) {
		if (later) turns.push({ run: later, messages: messagesOfRun(later, run) })
		characters += sizeOf(run)
		if (later && (turns.length === limit || characters > ANSWER_CHARACTERS))
			return { ...found, turns, next_cursor: later.run_id }
		later = run
	}
	if (later) turns.push({ run: later, messages: messagesOfRun(later, undefined) })
	return { ...found, turns, next_cursor: null }
}

async function createdAt(store: Store, { uid }: AgentRef, conversation: string): Promise<string | null> {
	for await (const key of store.keys(keys.turns(uid, conversation))) {
		const run = await store.get<RunRecord>(keys.run(uid, runOf(key)))
		if (run) return run.value.created_at
	}
	return null
}
