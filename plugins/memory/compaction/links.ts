/**
 * Links from replaced memories to what a compaction merges. They are changed in separate commits, since a merged memory may replace
 * more memories than one commit can hold. Each step may be repeated.
 */
import { agentScope } from '../../../core/store/agent-scope.ts'
import { change } from '../../../core/store/change.ts'
import type { Store } from '../../../core/store/ports.ts'
import { keys } from '../records.ts'
import type { GroupRecord, MemoryRecord } from '../records.ts'

/** Links what a merged memory replaces to it, where the link leads to an archived original. */
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

/** Links what the merged memory of a group replaces to its originals, before they return. */
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
