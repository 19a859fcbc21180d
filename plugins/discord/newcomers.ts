import type { Client } from 'discord.js'
import type { KnownChat } from '../channels/adapter.ts'
import { byAge, isSnowflake, overlapped, snowflakeAt } from './snowflake.ts'

/** Limit of returned channels; the most recently active are kept. */
const LIMIT = 100

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
		.slice(0, LIMIT)
		.map(({ id }) => ({ id, last_id: since, bound_at: new Date(0).toISOString() }))
}
