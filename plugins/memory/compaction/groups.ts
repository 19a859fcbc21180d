/**
 * Applies and undoes a compaction: each group of memories in one commit, and each `replaced_by` link to them in a separate commit,
 * since a merged memory may replace more memories than one commit can hold.
 */
import { isFault } from '../../../core/errors.ts'
import { agentScope } from '../../../core/store/agent-scope.ts'
import { change } from '../../../core/store/change.ts'
import type { Key, Op, Store } from '../../../core/store/ports.ts'
import { keys } from '../records.ts'
import { isSameText, textOp } from '../same-text.ts'
import type { GroupRecord, MemoryRecord } from '../records.ts'

/** Originals of one group: a commit may have 100 operations; an original needs two, the group itself up to five. */
export const GROUP_LIMIT = 40

/**
 * Replaces the originals by the merged memory, and archives them. Idempotent. Returns false and changes nothing if an original
 * was deleted meanwhile.
 */
export async function applyGroup(store: Store, uid: string, { ids, made }: GroupRecord): Promise<boolean> {
	const { compaction, group } = made.made_by
	const drop = async (): Promise<false> => {
		await store.delete(keys.group(uid, compaction, group))
		return false
	}
	if (await store.get(keys.archived(uid, compaction, group, ids[0] ?? ''))) return true // before a restart
	const ops: Op[] = [{ key: keys.memory(uid, made.id), value: made, expect: null }, textOp(uid, made.content, made.id)]
	for (const id of ids) {
		const entry = await store.get<MemoryRecord>(keys.memory(uid, id))
		if (!entry) return drop()
		ops.push({ key: entry.key, value: undefined, expect: entry.rev })
		ops.push({ key: keys.archived(uid, compaction, group, id), value: entry.value })
	}
	try {
		await store.commit(agentScope(uid), ops)
		return true
	} catch (error) {
		if (!isFault(error, 'conflict')) throw error
		return drop()
	}
}

/** Restores the originals, unless they were forgotten. Idempotent. */
export async function undoGroup(store: Store, uid: string, groupKey: Key): Promise<void> {
	await change(store, agentScope(uid), async () => {
		const entry = await store.get<GroupRecord>(groupKey)
		if (!entry) return { result: undefined }
		const { made } = entry.value
		const { compaction, group } = made.made_by
		const merged = await store.get<MemoryRecord>(keys.memory(uid, made.id))
		const ops: Op[] = [
			{ key: groupKey, value: undefined, expect: entry.rev },
			{ key: keys.memory(uid, made.id), value: undefined, expect: merged?.rev ?? null },
			{ key: keys.vector(uid, made.id), value: undefined },
		]
		// A memory that has replaced the merged one since then now replaces its originals.
		const newer = merged?.value.replaced_by
		const ids: string[] = []
		let sameText: string | undefined
		for await (const { key, value } of store.list<MemoryRecord>(keys.archive(uid, compaction, group))) {
			const original = newer === undefined ? value : { ...value, replaced_by: newer }
			ops.push({ key, value: undefined }, { key: keys.memory(uid, value.id), value: original })
			ids.push(value.id)
			if (isSameText(value.content, made.content)) sameText = value.id
		}
		const other = newer === undefined ? undefined : await store.get<MemoryRecord>(keys.memory(uid, newer))
		if (other) {
			const replaces = other.value.replaces?.flatMap((id) => (id === made.id ? ids : [id])) ?? []
			ops.push({ key: other.key, value: { ...other.value, replaces }, expect: other.rev })
		}
		return { ops: [...ops, textOp(uid, made.content, sameText)], result: undefined }
	})
}

/** Redirects `replaced_by` links that lead to an archived original to the memory that was merged from it. Idempotent. */
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

/** Redirects links from the merged memory of a group back to its originals, before these are restored. Idempotent. */
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
