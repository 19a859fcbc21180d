/** Records which messages were accepted, so that none is accepted twice and a connection knows where to resume. */
import { now } from '../../../core/util/ids.ts'
import type { AgentRef, Context } from '../../../core/plugin.ts'
import { deleteAll } from '../../shared/delete-all.ts'
import type { Key, Op } from '../../../core/store/ports.ts'
import type { ChatKind, IncomingMessage, KnownChat } from '../adapter.ts'
import type { Registry } from '../registry.ts'
import { scopeOf } from '../keys.ts'
import { keys } from './records.ts'
import type { ChatMark, KnownChatRecord, SeenMessage, SentMessage, ConversationChat } from './records.ts'

export type Marks = ReturnType<typeof openMarks>

/** Limit of agents, current and former, whose records of a chat are checked. */
const AGENT_LIMIT = 4
const CHATS_LIMIT = 1_000
/** Minimum interval between writes of the position of a feed. */
const ADVANCE_MS = 5_000

/** The position in the feed of a channel. */
interface Feed {
	/** Increases with every accepted message and every `advance`, so that a later position has a greater number. */
	taken: number
	cursor: string | null
}

export function openMarks(ctx: Pick<Context, 'store' | 'use' | 'signal'>, registry: Registry) {
	const { store } = ctx
	const feeds = new Map<string, Promise<Feed>>()
	/** When the position of each feed was last stored. */
	const storedAt = new Map<string, number>()

	const chatOf = async (channel_id: string, chat_id: string): Promise<KnownChatRecord | undefined> =>
		(await store.get<KnownChatRecord>(keys.chat(channel_id, chat_id)))?.value
	/** All marks of a chat: one per agent, and its own. */
	const marksOf = async (channel_id: string, chat: KnownChatRecord): Promise<ChatMark[]> => {
		const found = await Promise.all(
			chat.agents.map((uid) => store.get<ChatMark>(keys.mark(uid, channel_id, chat.chat_id))),
		)
		return [...found.flatMap((entry) => entry?.value ?? []), ...(chat.mark ? [chat.mark] : [])]
	}
	/** Id of the newest message that any agent of the chat has sent. */
	const sentOf = async (channel_id: string, { agents, chat_id }: KnownChatRecord): Promise<string | null> => {
		const found = await Promise.all(agents.map((uid) => store.get<SentMessage>(keys.sent(uid, channel_id, chat_id))))
		return found.reduce<string | null>((last, entry) => newer(last, entry?.value.id), null)
	}
	const loadFeed = async (channel_id: string): Promise<Feed> => {
		const feed: Feed = (await store.get<Feed>(keys.feed(channel_id)))?.value ?? { taken: 0, cursor: null }
		for await (const { value } of store.list<KnownChatRecord>(keys.chats(channel_id))) {
			for (const { taken, cursor } of await marksOf(channel_id, value)) {
				if (cursor !== null && (taken >= feed.taken || feed.cursor === null)) feed.cursor = cursor
				feed.taken = Math.max(feed.taken, taken)
			}
		}
		return feed
	}
	const feedOf = (channel_id: string): Promise<Feed> => {
		let feed = feeds.get(channel_id)
		if (!feed) {
			feeds.set(channel_id, (feed = loadFeed(channel_id)))
			feed.catch(() => feeds.delete(channel_id))
		}
		return feed
	}
	const markFor = async (channel_id: string, message: IncomingMessage, before: ChatMark | null): Promise<ChatMark> => {
		const { taken, cursor } = await feedOf(channel_id)
		return {
			chat_id: message.chat.id,
			last_id: newer(before?.last_id ?? null, message.id) ?? message.id,
			cursor: newer(cursor, message.cursor),
			taken: taken + 1,
			at: now(),
		}
	}
	/** Call it only once the message is durable: one that was not accepted must be delivered again. */
	const accepted = async (channel_id: string, { cursor }: IncomingMessage): Promise<void> => {
		const feed = await feedOf(channel_id)
		feed.cursor = newer(feed.cursor, cursor)
		feed.taken++
	}
	const saveChat = async (channel_id: string, chat: KnownChatRecord, also: Op[] = []): Promise<void> => {
		const op = { key: keys.chat(channel_id, chat.chat_id), value: chat }
		await store.commit(scopeOf(channel_id), [op, ...also])
	}

	return {
		async isKnown(channel_id: string, { id, chat }: IncomingMessage): Promise<boolean> {
			const known = await chatOf(channel_id, chat.id)
			if (!known) return false
			const places: Key[] = [
				keys.noted(channel_id, chat.id, id),
				...known.agents.map((uid) => keys.seen(uid, channel_id, chat.id, id)),
			]
			const found = await Promise.all(places.map((key) => store.get<SeenMessage>(key)))
			return found.some((entry) => entry !== undefined)
		},
		/** Adds the agent to the chat's record. Call it before the agent accepts a message of the chat. */
		async addAgent(channel_id: string, { chat }: IncomingMessage, { uid }: AgentRef): Promise<void> {
			const known = await chatOf(channel_id, chat.id)
			if (known?.agents.at(-1) === uid) return
			const agents = [...(known?.agents ?? []).filter((other) => other !== uid), uid].slice(-AGENT_LIMIT)
			await saveChat(channel_id, { ...(known ?? newChat(chat)), agents, at: now() })
		},
		/** The ops, in the agent's scope, that record the message. The commit conflicts if the message is already recorded. */
		async ops(channel_id: string, message: IncomingMessage, { uid }: AgentRef): Promise<Op[]> {
			const { id, chat } = message
			const before = await store.get<ChatMark>(keys.mark(uid, channel_id, chat.id))
			return [
				{ key: keys.seen(uid, channel_id, chat.id, id), value: { at: now() } satisfies SeenMessage, expect: null },
				{ key: keys.mark(uid, channel_id, chat.id), value: await markFor(channel_id, message, before?.value ?? null) },
			]
		},
		/** To be called once the `ops` of a message are durable. */
		accepted,
		/** Records a message that started no run. */
		async record(channel_id: string, message: IncomingMessage): Promise<void> {
			const { id, chat } = message
			const known = (await chatOf(channel_id, chat.id)) ?? newChat(chat)
			const mark = await markFor(channel_id, message, known.mark)
			const seen = { key: keys.noted(channel_id, chat.id, id), value: { at: now() } satisfies SeenMessage }
			await saveChat(channel_id, { ...known, mark, at: now() }, [seen])
			await accepted(channel_id, message)
		},
		/** Advances the feed past a message that needs no action, without recording the message. */
		async skip(channel_id: string, { cursor }: IncomingMessage): Promise<void> {
			const feed = await feedOf(channel_id)
			feed.cursor = newer(feed.cursor, cursor)
		},
		/** Sets the position of the feed. Stores the first one at once, and later ones at most every 5 s. */
		async advance(channel_id: string, cursor: string): Promise<void> {
			const feed = await feedOf(channel_id)
			const isNew = feed.cursor === null
			feed.cursor = newer(feed.cursor, cursor)
			feed.taken++ // newer than everything accepted before
			if (!isNew && performance.now() < (storedAt.get(channel_id) ?? -Infinity) + ADVANCE_MS) return
			await store.put(keys.feed(channel_id), { ...feed })
			storedAt.set(channel_id, performance.now())
		},
		cursor: async (channel_id: string): Promise<string | null> => (await feedOf(channel_id)).cursor,
		async chats(channel_id: string): Promise<KnownChat[]> {
			const found: { chat: KnownChatRecord; last_id: string; taken: number }[] = []
			for await (const { value: chat } of store.list<KnownChatRecord>(keys.chats(channel_id))) {
				const marks = await marksOf(channel_id, chat)
				const last_id = marks.reduce<string | null>((last, one) => newer(last, one.last_id), null)
				if (last_id !== null) found.push({ chat, last_id, taken: Math.max(...marks.map(({ taken }) => taken)) })
			}
			const known: KnownChat[] = []
			const since = registry.channel(channel_id)?.heard_since ?? ''
			for (const { chat, last_id } of found.toSorted((a, b) => b.taken - a.taken)) {
				const bound = await registry.bound(channel_id, [chat.chat_id, ...chat.within])
				if (!bound) continue
				const sent_id = await sentOf(channel_id, chat)
				const bound_at = bound.created_at > since ? bound.created_at : since
				known.push({ id: chat.chat_id, last_id, ...(sent_id !== null && { sent_id }), bound_at })
				if (known.length === CHATS_LIMIT) break
			}
			return known
		},
		kindOf: async (channel_id: string, chat_id: string): Promise<ChatKind> =>
			(await chatOf(channel_id, chat_id))?.kind ?? 'private',
		/** Ids of the containers of the chat, innermost first. */
		within: async (channel_id: string, chat_id: string): Promise<readonly string[]> =>
			(await chatOf(channel_id, chat_id))?.within ?? [],
		/** Stores the positions of all feeds. Needed after an agent was deleted, whose records may have held the newest positions. */
		async storeCursors(): Promise<void> {
			for (const [channel_id, feed] of feeds) await store.put(keys.feed(channel_id), { ...(await feed) })
		},
		async forget(channel_id: string): Promise<void> {
			feeds.delete(channel_id)
			storedAt.delete(channel_id)
			await sweep(keys.allNoted(channel_id))
			await sweep(keys.chats(channel_id))
			await store.delete(keys.feed(channel_id))
			for await (const { uid } of ctx.use('agents').list()) {
				for (const prefix of keys.ofChannel(uid, channel_id)) await sweep(prefix)
				await sweep(keys.all(uid, 'talk'), (value) => (value as ConversationChat).channel_id === channel_id)
			}
		},
		/** Deletes records of messages accepted before `before`, ISO 8601. */
		async prune(before: string): Promise<void> {
			const isOld = (value: unknown): boolean => (value as SeenMessage).at < before
			for (const channel_id of feeds.keys()) {
				await sweep(keys.allNoted(channel_id), isOld)
				// A chat that never had an agent needs no record.
				await sweep(keys.chats(channel_id), (value) => isOld(value) && (value as KnownChatRecord).agents.length === 0)
			}
			for await (const { uid } of ctx.use('agents').list()) {
				await sweep(keys.all(uid, 'seen'), isOld)
				await sweep(keys.all(uid, 'talk'), isOld)
			}
		},
	}

	/** Stops deleting when the plugin stops. */
	function sweep(prefix: Key, wanted: (value: unknown) => boolean = () => true): Promise<void> {
		return deleteAll(store, prefix, ({ value }) => !ctx.signal.aborted && wanted(value))
	}
}

function newChat({ id, kind, within = [] }: IncomingMessage['chat']): KnownChatRecord {
	return { chat_id: id, kind, within: within.slice(0, 8), agents: [], mark: null, at: now() }
}

/** The newer of two ids: numeric ids are compared by value; otherwise `after` is newer. */
function newer(before: string | null, after: string | undefined): string | null {
	if (after === undefined) return before
	if (before === null) return after
	const areNumbers = /^\d{1,40}$/.test(before) && /^\d{1,40}$/.test(after)
	if (!areNumbers) return after
	return BigInt(after) > BigInt(before) ? after : before
}
