/** Fetches messages that arrived while the bot was offline: a resumed session delivers them, but a new one does not. */
import { setTimeout as pause } from 'node:timers/promises'
import { Routes } from 'discord.js'
import type { Client, REST } from 'discord.js'
import type { KnownChat } from '../channels/adapter.ts'
import { isGone, isUnauthorized } from './errors.ts'
import type { DiscordMessage } from './incoming.ts'
import { byAge, isSnowflake, overlapped, snowflakeAt, timeOf } from './snowflake.ts'

export interface CatchUp {
	rest: Pick<REST, 'get'>
	/** The most active first. */
	chats: readonly KnownChat[]
	take(message: DiscordMessage): Promise<void>
	/** Called when a chat has caught up, or can no longer be read. `ids`: of the accepted messages. */
	done(chat_id: string, ids: ReadonlySet<string>): void
	warn(chat_id: string, message: string): void
	signal: AbortSignal
}

/** Older messages are no longer answered. */
const OLDEST_MS = 24 * 3_600_000
const PAGE = 100
/** Limit of pages per chat. If a chat has more, its newest messages are missed. */
const PAGES = 50
/** Chats that are read concurrently. Discord allows a bot 50 requests a second, and answers need some of them. */
const CONCURRENCY = 4
const RETRY_MS = [1_000, 4_000, 16_000]
/** Limit of chats that `newcomersOf` returns; the most recently active are kept. */
const NEWCOMERS = 100

/** Reads all chats. Throws if a chat does not respond, even after a retry, or if a message was not accepted. */
export async function catchUp(work: CatchUp): Promise<void> {
	const queue = work.chats.values()
	const ask = async (): Promise<void> => {
		for (const chat of queue) {
			const ids = await askChat(chat, work)
			work.signal.throwIfAborted()
			work.done(chat.id, ids)
		}
	}
	await Promise.all(Array.from({ length: CONCURRENCY }, ask))
}

async function askChat(chat: KnownChat, { rest, take, warn, signal }: CatchUp): Promise<Set<string>> {
	const ids = new Set<string>()
	if (!isSnowflake(chat.id)) return ids
	let after = beginning(chat)
	for (let page = 0; page < PAGES; page++) {
		const answer = await read(rest, chat.id, after, signal)
		if (!answer) return ids
		const { messages, isLast } = answer
		for (const message of messages) {
			await take(message)
			ids.add(message.id)
		}
		const newest = messages.at(-1)?.id
		if (isLast || newest === undefined || byAge(newest, after) <= 0) return ids
		after = newest
	}
	warn(
		chat.id,
		`more than ${PAGES * PAGE} messages arrived while the gateway was offline; the newest of them were missed`,
	)
	return ids
}

/** The id after which to request messages. */
function beginning({ last_id, bound_at }: KnownChat): string {
	const moments = [Date.now() - OLDEST_MS, Date.parse(bound_at)]
	if (isSnowflake(last_id)) moments.push(timeOf(overlapped(last_id)))
	return snowflakeAt(Math.max(...moments.filter(Number.isFinite)))
}

/** Oldest first; undefined if the chat can no longer be read. */
async function read(
	rest: CatchUp['rest'],
	chat_id: string,
	after: string,
	signal: AbortSignal,
): Promise<{ messages: DiscordMessage[]; isLast: boolean } | undefined> {
	const query = new URLSearchParams({ after, limit: String(PAGE) })
	for (let attempt = 0; ; attempt++) {
		try {
			const given = (await rest.get(Routes.channelMessages(chat_id), { query, signal })) as DiscordMessage[]
			const messages = given.filter((message) => isSnowflake(message?.id)).toSorted((a, b) => byAge(a.id, b.id))
			return { messages, isLast: given.length < PAGE }
		} catch (error) {
			if (isGone(error)) return undefined
			const wait = RETRY_MS[attempt]
			if (wait === undefined || isUnauthorized(error)) throw error
			await pause(wait, undefined, { signal })
		}
	}
}

/**
 * Channels and threads without accepted messages, but with messages newer than the newest accepted one of all chats (`cursor`), or
 * very recent ones: one of these may be the first question to the bot. Direct chats cannot be found this way.
 */
export function newcomersOf(client: Client, known: readonly KnownChat[], cursor: string | null): KnownChat[] {
	const since = isSnowflake(cursor) ? cursor : snowflakeAt(Date.now())
	const floor = overlapped(since)
	const active = new Set(known.map(({ id }) => id))
	const found: { id: string; newest: string }[] = []
	for (const channel of client.channels.cache.values()) {
		const newest = 'lastMessageId' in channel ? channel.lastMessageId : null
		if (active.has(channel.id) || !isSnowflake(newest) || byAge(newest, floor) <= 0) continue
		found.push({ id: channel.id, newest })
	}
	return found
		.toSorted((a, b) => byAge(b.newest, a.newest))
		.slice(0, NEWCOMERS)
		.map(({ id }) => ({ id, last_id: since, bound_at: new Date(0).toISOString() }))
}
