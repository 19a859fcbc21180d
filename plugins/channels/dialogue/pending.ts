/**
 * Accepted messages whose runs have not started: those with files, and those behind them in the same chat. Each is stored, so
 * it can be acknowledged to the platform, and a slow download does not delay messages of other chats. Each chat has a worker
 * that loads the files of one message after another and starts the runs. The commit that starts a run deletes the record, so
 * each message gets exactly one run, even after crashes.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { isFault } from '../../../core/errors.ts'
import { agentScope } from '../../../core/store/agent-scope.ts'
import type { Op } from '../../../core/store/ports.ts'
import { openSemaphore } from '../../../core/util/semaphore.ts'
import type { ChatRef } from '../adapter.ts'
import { chatKey } from './chat-queues.ts'
import { Counts } from '../../../core/util/counts.ts'
import type { DialogueDeps } from './deps.ts'
import { loadFiles } from './files.ts'
import type { Notices } from './notices.ts'
import { keys } from './records.ts'
import type { PendingMessage } from './records.ts'
import { startRun } from './start-run.ts'
import { texts } from './texts.ts'

export type PendingMessages = ReturnType<typeof openPending>

/** The part of a pending message that is kept in memory. */
interface QueuedMessage extends Pick<
	PendingMessage,
	'id' | 'agent_uid' | 'channel_id' | 'chat' | 'conversation' | 'binding_id'
> {
	merges: boolean
	/** When this process queued it, by `performance.now()`. */
	since: number
	dropped: AbortController
}

const CHAT_LIMIT = 20
const CHANNEL_LIMIT = 1_000
/** Messages whose files are loaded concurrently. Each holds one file in memory; agents take turns. */
const LOADING_LIMIT = 8
/** Time limit for all files of a message. */
const LOAD_MS = 20_000
/** The files of a message that has waited longer in its chat's queue are not loaded. */
const WAIT_MS = 120_000
/** Delay before a failed start is retried, such as while the store was unavailable. */
const RETRY_MS = 5_000

export function openPending(deps: Omit<DialogueDeps, 'pace' | 'marks' | 'sessions'> & { notices: Notices }) {
	const { ctx } = deps
	const { store, log, signal } = ctx
	/** By chat, oldest first. */
	const chats = new Map<string, QueuedMessage[]>()
	const counts = new Counts()
	const workers = new Set<Promise<void>>()
	const loading = openSemaphore(LOADING_LIMIT)

	const inChat = (channel_id: string, chat_id: string): number => chats.get(chatKey(channel_id, chat_id))?.length ?? 0
	const enqueue = ({ id, agent_uid, channel_id, chat, conversation, binding_id, merges }: PendingMessage): void => {
		const key = chatKey(channel_id, chat.id)
		const queue = chats.get(key) ?? []
		if (queue.some((one) => one.id === id)) return
		const [since, dropped] = [performance.now(), new AbortController()]
		queue.push({ id, agent_uid, channel_id, chat, conversation, binding_id, merges: merges ?? false, since, dropped })
		counts.add(channel_id)
		if (chats.has(key)) return
		chats.set(key, queue)
		const worker = runWorker(key, queue).finally(() => workers.delete(worker))
		workers.add(worker)
	}
	const runWorker = async (key: string, queue: QueuedMessage[]): Promise<void> => {
		for (let entry = queue[0]; entry; entry = queue[0]) {
			const done = await startFirst(entry, queue)
			if (signal.aborted) return
			queue.splice(0, done)
			counts.add(entry.channel_id, -done)
		}
		chats.delete(key)
	}
	/** Starts the run of a queue's first message, unless that is dropped. Returns the number of messages that share the run. */
	const startFirst = async (entry: QueuedMessage, queue: readonly QueuedMessage[]): Promise<number> => {
		const end = AbortSignal.any([signal, entry.dropped.signal])
		let { since } = entry
		if (entry.merges) {
			await deps.runs.idle(entry, end)
			since = performance.now()
		}
		while (!end.aborted) {
			const group = entry.merges ? queue.slice(0, groupSize(entry, queue)) : [entry]
			try {
				await start(group, since, end)
				return group.length
			} catch (error) {
				if (end.aborted) break
				if (error instanceof Dropped) continue // one message was dropped: retry without it
				const { id, channel_id } = entry
				log.error(
					{ err: error, id, channel_id },
					'the run of a chat message could not be started; this will be retried',
				)
				await sleep(RETRY_MS, undefined, { signal: end, ref: false }).catch(() => {})
			}
		}
		return 1
	}
	const entryOf = ({ agent_uid, channel_id, id }: QueuedMessage) =>
		store.get<PendingMessage>(keys.pending(agent_uid, channel_id, id))
	/** Starts one run for all messages that were not dropped. `since`: the start of the wait limited by `WAIT_MS`. */
	const start = async (group: readonly QueuedMessage[], since: number, end: AbortSignal): Promise<void> => {
		const entries = (await Promise.all(group.map(entryOf))).filter((one) => one !== undefined)
		const newest = entries.at(-1)?.value
		if (!newest) return
		const messages = entries.map(({ value }) => value)
		const { agent: name, agent_uid, channel_id, conversation, chat, message_id, place, trigger } = newest
		const agent = { name, uid: agent_uid }
		const removals: Op[] = entries.map(({ key, rev }) => ({ key, value: undefined, expect: rev }))
		const refuse = async (text: string): Promise<void> => {
			await store.commit(agentScope(agent_uid), removals)
			deps.notices.say(channel_id, chat, text, message_id)
		}
		const isBound = async (): Promise<boolean> =>
			(await deps.registry.bound(channel_id, [chat.id, ...newest.within]))?.binding_id === newest.binding_id

		if (!(await isBound())) return void (await store.commit(agentScope(agent_uid), removals))
		const files = messages.flatMap((one) => one.files)
		const more_files = messages.reduce((sum, one) => sum + one.more_files, 0)
		const max_ms = Math.max(0, Math.min(LOAD_MS, since + WAIT_MS - performance.now()))
		const release = files.length > 0 ? await loading.acquire({ signal: end, owner: agent_uid }) : undefined
		const connection = async (until: number) => (await deps.platforms.open(channel_id, until))?.connection
		const { attachments, lines } = await loadFiles(ctx, {
			agent,
			files,
			more_files,
			max_ms,
			signal: end,
			connection,
		}).finally(release)
		end.throwIfAborted()
		if (!(await isBound())) return void (await store.commit(agentScope(agent_uid), removals))
		try {
			await startRun(deps, {
				agent,
				conversation,
				channel_id,
				chat,
				message_id,
				merged: messages.slice(0, -1).map((one) => one.message_id),
				prompt: [...messages.map(({ prompt }) => prompt), ...lines].filter((part) => part !== '').join('\n\n'),
				attachments,
				place,
				trigger,
				async also() {
					const revs = await Promise.all(entries.map(async ({ key }) => (await store.get(key))?.rev))
					if (entries.some(({ rev }, at) => rev !== revs[at])) throw new Dropped()
					return removals
				},
			})
		} catch (error) {
			if (isFault(error, 'queue_full')) return refuse(texts.tooMuch)
			// A permanent failure must not block later messages of the chat.
			const mayRetry = !isFault(error) || error.status >= 500 || ['conflict', 'not_found'].includes(error.code)
			if (!mayRetry) return refuse(texts.commandFailed(error.message))
			throw error
		}
	}
	/** Returns false if its run has started, or it was already dropped. */
	const remove = async (message: QueuedMessage): Promise<boolean> => {
		const entry = await entryOf(message)
		if (!entry) return false
		try {
			await store.commit(agentScope(message.agent_uid), [{ key: entry.key, value: undefined, expect: entry.rev }])
			return true
		} catch (error) {
			if (isFault(error, 'conflict')) return false
			throw error
		}
	}

	return {
		/** Number of pending messages of a chat. If there are any, later messages must be added as well. */
		inChat,
		count: (channel_id: string): number => counts.of(channel_id),
		hasRoom: (channel_id: string, chat_id: string): boolean =>
			counts.of(channel_id) < CHANNEL_LIMIT && inChat(channel_id, chat_id) < CHAT_LIMIT,
		/** Stores a message together with `also`, ops in the agent's scope. Throws `conflict` without any effect. */
		async add(message: PendingMessage, also: Op[]): Promise<void> {
			const { id, agent_uid, channel_id } = message
			const record: Op = { key: keys.pending(agent_uid, channel_id, id), value: message, expect: null }
			await store.commit(agentScope(agent_uid), [record, ...also])
			enqueue(message)
		},
		/** Queues the messages that an earlier process accepted. Idempotent. */
		async load(): Promise<void> {
			const found: PendingMessage[] = []
			for await (const { uid } of ctx.use('agents').list())
				for await (const { value } of store.list<PendingMessage>(keys.all(uid, 'pending'))) found.push(value)
			for (const one of found.toSorted((a, b) => (a.id < b.id ? -1 : 1))) enqueue(one)
		},
		/** Drops the messages of a chat or thread. Returns how many; their runs will never start. */
		async drop(agent_uid: string, channel_id: string, { id, thread_id }: ChatRef): Promise<number> {
			let count = 0
			for (const entry of [...(chats.get(chatKey(channel_id, id)) ?? [])].toReversed()) {
				if (entry.agent_uid !== agent_uid || entry.chat.thread_id !== thread_id) continue
				if (!(await remove(entry))) continue
				entry.dropped.abort(new Dropped())
				count++
			}
			return count
		},
		/** Drops the messages of a deleted channel or agent, whose records are already deleted. */
		forget(which: { channel_id: string } | { agent_uid: string }): void {
			const matches = (entry: QueuedMessage): boolean =>
				'channel_id' in which ? entry.channel_id === which.channel_id : entry.agent_uid === which.agent_uid
			for (const queue of chats.values())
				for (const entry of queue) if (matches(entry)) entry.dropped.abort(new Dropped())
		},
		async [Symbol.asyncDispose]() {
			await Promise.all(workers)
		},
	}
}

/** Number of messages at the front of a queue that share the run of the first one. */
function groupSize(first: QueuedMessage, queue: readonly QueuedMessage[]): number {
	const other = queue.findIndex(
		({ merges, binding_id, conversation, chat }) =>
			!merges ||
			binding_id !== first.binding_id ||
			conversation !== first.conversation ||
			chat.thread_id !== first.chat.thread_id,
	)
	return other < 0 ? queue.length : other
}

/** A pending message was dropped. */
class Dropped extends Error {}
