/**
 * Redirects the `replaced_by` links of memories when a compaction merges or restores what they lead to. Each link is changed in a
 * separate commit, since a merged memory may replace more memories than one commit can hold. Idempotent.
 */
import { agentScope } from '../../../core/store/agent-scope.ts'
import { change } from '../../../core/store/change.ts'
import type { Store } from '../../../core/store/ports.ts'
import { keys } from '../records.ts'
import type { GroupRecord, MemoryRecord } from '../records.ts'

/** Redirects links that lead to an archived original to the memory that was merged from it. */
export async function linkToMerged(store: Store, uid: string): Promise<void> {
	for await (const { value } of store.list<MemoryRecord>(keys.memories(uid))) {
		if (!value.made_by) continue
		for (const older of value.replaces ?? []) {
			await relink(store, uid, older, async (newer) =>
				(await store.get(keys.memory(uid, newer))) || !(await store.get(keys.memory(uid, value.id))) ? newer : value.id,
			)
		}
	}
}

/** Redirects links from the merged memory of a group back to its originals, before these are restored. */
export async function linkToOriginals(store: Store, uid: string, { made }: GroupRecord): Promise<void> {
	const { compaction, group } = made.made_by
	for await (const { value } of store.list<MemoryRecord>(keys.archive(uid, compaction, group))) {
		for (const older of value.replaces ?? [])
			await relink(store, uid, older, (newer) => (newer === made.id ? value.id : newer))
	}
}

async function relink(
	store: Store,
	uid: string,
	id: string,
	linkOf: (replaced_by: string) => string | Promise<string>,
): Promise<void> {
	await change(store, agentScope(uid), async () => {
		const entry = await store.get<MemoryRecord>(keys.memory(uid, id))
		const { replaced_by } = entry?.value ?? {}
		const next = replaced_by === undefined ? undefined : await linkOf(replaced_by)
		if (!entry || next === undefined || next === replaced_by || next === id) return { result: undefined }
		const value: MemoryRecord = { ...entry.value, replaced_by: next }
		return { ops: [{ key: entry.key, value, expect: entry.rev }], result: undefined }
	})
}
