/** The stored records of memories, all in the scope of their agent. */
import type { AgentRef } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import type { Key, Store } from '../../core/store/ports.ts'
import type { Compaction, Memory } from './contract.ts'

type Uid = AgentRef['uid']

export const keys = {
	memory: (uid: Uid, id: string): Key => [agentScope(uid), 'memory', id],
	/** Ids sort by time. */
	memories: (uid: Uid): Key => [agentScope(uid), 'memory'],
	/** From the key of a call to its memory, so that a repeated call creates no second one. */
	call: (uid: Uid, hash: string): Key => [agentScope(uid), 'memory-call', hash],
	/** From a text to the memory that has it; see same-text.ts. */
	same: (uid: Uid, hash: string): Key => [agentScope(uid), 'memory-same', hash],
	/** An embedding made by a server. */
	vector: (uid: Uid, id: string): Key => [agentScope(uid), 'memory-vector', id],
	vectors: (uid: Uid): Key => [agentScope(uid), 'memory-vector'],
	compaction: (uid: Uid, compaction: string): Key => [agentScope(uid), 'memory-compaction', compaction],
	compactions: (uid: Uid): Key => [agentScope(uid), 'memory-compaction'],
	/** A group that a compaction merges. */
	group: (uid: Uid, compaction: string, group: string): Key => [agentScope(uid), 'memory-group', compaction, group],
	groups: (uid: Uid, compaction: string): Key => [agentScope(uid), 'memory-group', compaction],
	/** An archived original. */
	archived: (uid: Uid, compaction: string, group: string, id: string): Key => [
		agentScope(uid),
		'memory-archive',
		compaction,
		group,
		id,
	],
	archive: (uid: Uid, compaction: string, group: string): Key => [agentScope(uid), 'memory-archive', compaction, group],
}

export interface MemoryRecord extends Memory {
	/** Hash of the key of the call that stored it. */
	call?: string
	/** Set if a compaction made it: the location of its originals. */
	made_by?: { compaction: string; group: string }
}

export type CallRecord = Pick<Memory, 'id' | 'created_at'>

export interface VectorRecord {
	embedder: string
	/** Float16, little-endian. */
	bytes: Uint8Array
}

/**
 * `planning`: nothing has changed yet. `applying`, `undoing`: will be completed, even after a crash. The others are those of the
 * API.
 */
export interface CompactionRecord extends Omit<Compaction, 'status'> {
	status: 'planning' | 'applying' | 'completed' | 'failed' | 'undoing' | 'undone'
	/** The agent's name, for events after a restart. */
	agent: string
}

export interface GroupRecord {
	/** The originals, oldest first. */
	ids: string[]
	made: MemoryRecord & Required<Pick<MemoryRecord, 'made_by'>>
}

/** Shares nothing with the record, which may be frozen. */
export function shown({ id, content, tags, created_at, replaces, replaced_by }: MemoryRecord): Memory {
	const links = { ...(replaces && { replaces: [...replaces] }), ...(replaced_by !== undefined && { replaced_by }) }
	return { id, content, tags: [...tags], created_at, ...links }
}

/** The memories among `ids` that exist, in that order. The records are shared: do not change them. */
export async function memoriesAt(
	store: Pick<Store, 'getShared'>,
	uid: Uid,
	ids: readonly string[],
): Promise<MemoryRecord[]> {
	const entries = await Promise.all(ids.map(async (id) => store.getShared<MemoryRecord>(keys.memory(uid, id))))
	return entries.flatMap((entry) => entry?.value ?? [])
}

/** Most agents have none. Checking this first avoids the index thread and the embedding for them. */
export async function hasMemories(store: Pick<Store, 'keys'>, uid: Uid): Promise<boolean> {
	for await (const _ of store.keys(keys.memories(uid), { limit: 1 })) return true
	return false
}

export function bytesOf(vector: Float32Array): Uint8Array {
	return new Uint8Array(Float16Array.from(vector).buffer)
}

/** `bytes` may start at an unaligned offset of a larger buffer. */
export function vectorOf(bytes: Uint8Array): Float32Array {
	return Float32Array.from(new Float16Array(bytes.slice().buffer))
}
