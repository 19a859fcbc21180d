import { setTimeout as pause } from 'node:timers/promises'
import { PATIENCE_MS, unreachable } from './client.ts'
import type { Client, Stored } from './client.ts'

export interface ReadRange {
	/** Where to begin: a position, or a time (ISO 8601). */
	seq?: number
	start_time?: string
	/** Up to this position, which is, or was, that of a message of the stream. */
	until: number
}

const BATCH = 500
const BEHIND_MS = 50

/**
 * Reads the messages of a stream in order, up to a position that its leader has. Any server answers, and one may be behind:
 * then it is asked again. Throws `unavailable` if none catches up within 12 s.
 */
export async function readUntil(
	client: Client,
	stream: string,
	{ seq, start_time, until }: ReadRange,
	found: (message: Stored) => void,
): Promise<void> {
	let from: { seq: number } | { start_time: string } = start_time === undefined ? { seq: seq ?? 1 } : { start_time }
	let end = performance.now() + PATIENCE_MS
	for (;;) {
		if ('seq' in from && from.seq > until) return
		const messages = await client.direct(stream, { ...from, batch: BATCH })
		for (const message of messages) {
			if (message.seq > until) return
			found(message)
		}
		const last = messages.at(-1)
		if (last) {
			if (last.seq >= until) return
			from = { seq: last.seq + 1 }
			end = performance.now() + PATIENCE_MS
			continue
		}
		if (performance.now() > end) throw unreachable('the servers of the cluster do not agree on what is stored')
		await pause(BEHIND_MS)
	}
}
