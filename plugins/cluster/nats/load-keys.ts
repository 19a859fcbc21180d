import { UNKNOWN } from './key-index.ts'
import type { KeyIndex } from './key-index.ts'
import type { Client } from './client.ts'
import { DELETED_TTL_S } from './records.ts'
import { infoOf, rootAndKeyOf, token } from './streams.ts'
import type { Names } from './streams.ts'
import { messagesUntil } from './read-stream.ts'

/** Maximum number of subjects in one answer of the cluster. */
const PAGE = 100_000
/** The message of a deleted key may exist this much longer than its TTL. */
const MARGIN_S = 60

/**
 * Fills the indexes, each named by the prefix of its subjects, with the keys in the stream. There must be no writes meanwhile. A key
 * whose last message has no body was deleted. The list of subjects does not show that, but such a message is always recent.
 */
export async function loadKeys(
	client: Client,
	{ prefix, state, lease }: Names,
	indexes: Readonly<Record<string, KeyIndex>>,
): Promise<void> {
	const entryOf = (subject: string): [KeyIndex, string] | undefined => {
		const [root, key] = rootAndKeyOf(subject)
		const index = indexes[root]
		// base64url that decodes to the same key, but is not what the gateway writes, is not its record.
		return index && token(key) === subject.slice(root.length + 1) ? [index, key] : undefined
	}
	let last = 0
	for (let offset = 0; ; offset += PAGE) {
		const info = await infoOf(client, state, { subjects_filter: `${prefix}.kv.>`, offset })
		const subjects = Object.keys(info.state.subjects ?? {})
		for (const subject of subjects) {
			const [index, key] = entryOf(subject) ?? []
			index?.set(key as string, UNKNOWN)
		}
		last = info.state.last_seq
		if (subjects.length === 0 || offset + subjects.length >= (info.total ?? 0)) break
	}
	const now = (await client.last(state, lease))?.time ?? Date.now()
	const since = new Date(now - (DELETED_TTL_S + MARGIN_S) * 1000).toISOString()
	for await (const { subject, data, seq } of messagesUntil(client, state, { start_time: since }, last)) {
		const [index, key] = entryOf(subject) ?? []
		if (data.length === 0) index?.delete(key as string)
		// A server that was killed may have messages that the leader lacks: only the leader's list decides which keys exist.
		else if (index?.get(key as string) !== undefined) index.set(key as string, seq)
	}
}
