import { UNKNOWN } from './key-index.ts'
import type { KeyIndex } from './key-index.ts'
import type { Client } from './client.ts'
import { DELETED_TTL_S } from './records.ts'
import { infoOf, rootAndKeyOf } from './streams.ts'
import type { Names } from './streams.ts'
import { messagesUntil } from './read-stream.ts'

/** The most subjects that the cluster names in one answer. */
const NAMED = 100_000
/** A deleted key's message may be there this much longer than it must. */
const MARGIN_S = 60

/**
 * Fills the indexes with the keys in the stream, by what their subjects begin with. Nobody writes meanwhile. A key whose last
 * message has no body was deleted; the names do not say that, but such a message is never old.
 */
export async function loadKeys(
	client: Client,
	{ prefix, state, lease }: Names,
	indexes: Readonly<Record<string, KeyIndex>>,
): Promise<void> {
	const placed = (subject: string): [KeyIndex, string] | undefined => {
		const [root, key] = rootAndKeyOf(subject)
		const index = indexes[root]
		return index && [index, key]
	}
	let last = 0
	for (let offset = 0; ; offset += NAMED) {
		const info = await infoOf(client, state, { subjects_filter: `${prefix}.kv.>`, offset })
		const subjects = Object.keys(info.state.subjects ?? {})
		for (const subject of subjects) {
			const [index, key] = placed(subject) ?? []
			index?.set(key as string, UNKNOWN)
		}
		last = info.state.last_seq
		if (subjects.length === 0 || offset + subjects.length >= (info.total ?? 0)) break
	}
	const now = (await client.last(state, lease))?.time ?? Date.now()
	const since = new Date(now - (DELETED_TTL_S + MARGIN_S) * 1000).toISOString()
	for await (const { subject, data, seq } of messagesUntil(client, state, { start_time: since }, last)) {
		const [index, key] = placed(subject) ?? []
		if (data.length === 0) index?.delete(key as string)
		// A server that was killed may have messages that the leader has not: only the leader says which keys there are.
		else if (index?.get(key as string) !== undefined) index.set(key as string, seq)
	}
}
