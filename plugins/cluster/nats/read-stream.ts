/** Reads the messages of a stream in order. Any server may answer each request. */
import { setTimeout as pause } from 'node:timers/promises'
import { PATIENCE_MS, unreachable } from './client.ts'
import type { Client, Stored } from './client.ts'

/** The start: a position, or a time (ISO 8601). `next_by_subj`: only messages whose subject matches this. */
export type ReadFrom = { seq: number; next_by_subj?: string } | { start_time: string }

const BATCH = 256
const BEHIND_MS = 50

/** Ends when the server that answers has no more messages; it may be behind the leader. */
export async function* messagesFrom(client: Client, stream: string, from: ReadFrom): AsyncGenerator<Stored> {
	for (let next = from; ;) {
		const messages = await client.direct(stream, { ...next, batch: BATCH })
		yield* messages
		const last = messages.at(-1)
		if (!last) return
		next = { ...('seq' in next && next), seq: last.seq + 1 }
	}
}

/**
 * Ends at `until`, a position that the leader has or had, and retries while the answering server is behind. Throws `unavailable` if
 * none catches up within 12 s.
 */
export async function* messagesUntil(
	client: Client,
	stream: string,
	from: ReadFrom,
	until: number,
): AsyncGenerator<Stored> {
	let next = from
	let end = performance.now() + PATIENCE_MS
	while (!('seq' in next) || next.seq <= until) {
		const start = next
		for await (const message of messagesFrom(client, stream, start)) {
			if (message.seq <= until) yield message
			if (message.seq >= until) return
			next = { seq: message.seq + 1 }
		}
		if (next !== start) end = performance.now() + PATIENCE_MS
		else if (performance.now() > end) throw unreachable('the servers of the cluster do not agree on what is stored')
		else await pause(BEHIND_MS)
	}
}
