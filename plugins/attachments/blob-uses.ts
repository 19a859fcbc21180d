/** Counts the runs that use a blob, in the commits that write their records and steps. The blob is deleted with the last. */
import { agentScope } from '../../core/store/agent-scope.ts'
import { change } from '../../core/store/change.ts'
import { deleteAll } from '../shared/delete-all.ts'
import type { Op, Store } from '../../core/store/ports.ts'
import { now } from '../../core/util/ids.ts'
import { blobName, digestIn, keys } from './blob-keys.ts'
import type { BlobRecord, LooseRecord, TotalRecord, UsesRecord } from './blob-keys.ts'
import type { Blob, Blobs } from './contract.ts'
import { findBlob } from './read-blob.ts'

/** Blobs per commit that are added to a run, or removed: up to two writes each, and a commit contains other writes, too. */
export const USES_PER_COMMIT = 32

/** As `Blobs.use`. */
export async function useBlobs(
	store: Pick<Store, 'get'>,
	...[uid, run_id, attachments]: Parameters<Blobs['use']>
): ReturnType<Blobs['use']> {
	const used = await store.get<UsesRecord>(keys.uses(uid, run_id))
	const digests = new Set(used?.value.digests)
	const before = digests.size
	const ops: Op[] = []
	const missing: string[] = []
	for (const { blob } of attachments) {
		const digest = digestIn(blob)
		if (ops.length === USES_PER_COMMIT) break
		if (digest !== undefined && digests.has(digest)) continue
		const entry = digest === undefined ? undefined : await store.get<BlobRecord>(keys.blob(uid, digest))
		if (!entry || digest === undefined) {
			missing.push(blob)
			continue
		}
		digests.add(digest)
		ops.push({ key: entry.key, value: { ...entry.value, uses: entry.value.uses + 1 }, expect: entry.rev })
	}
	if (digests.size === before) return { ops, missing }
	const value: UsesRecord = { digests: [...digests] }
	ops.push({ key: keys.uses(uid, run_id), value, expect: used?.rev ?? null })
	return { ops, missing }
}

/** As `Blobs.usedBy`. */
export async function usedBlobs(store: Pick<Store, 'get'>, uid: string, run_id: string): Promise<Blob[]> {
	const digests = (await store.get<UsesRecord>(keys.uses(uid, run_id)))?.value.digests ?? []
	const found = await Promise.all(digests.map((digest) => findBlob(store, uid, blobName(digest))))
	return found.filter((blob) => blob !== undefined)
}

/** As `Blobs.release`. */
export async function releaseBlobs(store: Store, uid: string, run_id: string): Promise<void> {
	const key = keys.uses(uid, run_id)
	for (let isLeft = true; isLeft;) {
		const loose = await change(store, agentScope(uid), async () => {
			const used = await store.get<UsesRecord>(key)
			isLeft = (used?.value.digests.length ?? 0) > USES_PER_COMMIT
			if (!used) return { result: [] }
			const left = used.value.digests.slice(USES_PER_COMMIT)
			const { ops, result } = await withoutUse(store, uid, used.value.digests.slice(0, USES_PER_COMMIT))
			ops.push({ key, value: left.length > 0 ? { digests: left } : undefined, expect: used.rev })
			return { ops, result }
		})
		for (const upload of loose) await deleteLoose(store, uid, upload)
	}
}

/** Deletes blobs that no run uses, and the bytes of interrupted uploads and deletions, from before a time (ISO 8601). */
export async function collectBlobs(store: Store, uid: string, before: string): Promise<void> {
	for await (const { key, value } of store.list<BlobRecord>(keys.blobs(uid))) {
		if (value.uses > 0 || value.at >= before) continue
		const loose = await change(store, agentScope(uid), async () => {
			const entry = await store.get<BlobRecord>(key)
			if (!entry || entry.value.uses > 0 || entry.value.at >= before) return { result: [] }
			return withoutUse(store, uid, [key.at(-1) ?? ''])
		})
		for (const upload of loose) await deleteLoose(store, uid, upload)
	}
	for await (const { key, value } of store.list<LooseRecord>(keys.allLoose(uid)))
		if (value.deleted || value.at < before) await deleteLoose(store, uid, key.at(-1) ?? '')
}

/** Deletes the bytes of an upload. Idempotent. */
export async function deleteLoose(store: Store, uid: string, upload: string): Promise<void> {
	await deleteAll(store, keys.pieces(uid, upload))
	await store.delete(keys.loose(uid, upload))
}

/** The writes that remove one use of each blob. `result`: the uploads whose blobs are deleted by them. */
async function withoutUse(
	store: Store,
	uid: string,
	digests: readonly string[],
): Promise<{ ops: Op[]; result: string[] }> {
	const ops: Op[] = []
	const result: string[] = []
	let freed = 0
	for (const digest of digests) {
		const entry = await store.get<BlobRecord>(keys.blob(uid, digest))
		if (!entry) continue
		const { uses, upload, size } = entry.value
		if (uses > 1) {
			ops.push({ key: entry.key, value: { ...entry.value, uses: uses - 1 }, expect: entry.rev })
			continue
		}
		freed += size
		result.push(upload)
		ops.push({ key: entry.key, value: undefined, expect: entry.rev })
		ops.push({ key: keys.loose(uid, upload), value: { at: now(), deleted: true } satisfies LooseRecord })
	}
	if (freed === 0) return { ops, result }
	const total = await store.get<TotalRecord>(keys.total(uid))
	const bytes = Math.max(0, (total?.value.bytes ?? 0) - freed)
	ops.push({ key: keys.total(uid), value: { bytes } satisfies TotalRecord, expect: total?.rev ?? null })
	return { ops, result }
}
