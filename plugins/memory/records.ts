/** Where memories stand in the store, all in the scope of their agent, and what the records hold. */
import type { AgentRef } from '../../core/plugin.ts'
import type { Key } from '../../core/store/ports.ts'
import type { Compaction, Memory } from './contract.ts'

type Uid = AgentRef['uid']

export const scopeOf = (uid: Uid): string => `agent:${uid}`

export const keys = {
	memory: (uid: Uid, id: string): Key => [scopeOf(uid), 'memory', id],
	/** Ids sort by time. */
	memories: (uid: Uid): Key => [scopeOf(uid), 'memory'],
	/** From the key of a call to the memory that it made, so that a call made again makes no second one. */
	call: (uid: Uid, hash: string): Key => [scopeOf(uid), 'memory-call', hash],
	/** What an embedding server made. */
	vector: (uid: Uid, id: string): Key => [scopeOf(uid), 'memory-vector', id],
	vectors: (uid: Uid): Key => [scopeOf(uid), 'memory-vector'],
	compaction: (uid: Uid, compaction: string): Key => [scopeOf(uid), 'memory-compaction', compaction],
	compactions: (uid: Uid): Key => [scopeOf(uid), 'memory-compaction'],
	/** A group that a compaction merges. */
	group: (uid: Uid, compaction: string, group: string): Key => [scopeOf(uid), 'memory-group', compaction, group],
	groups: (uid: Uid, compaction: string): Key => [scopeOf(uid), 'memory-group', compaction],
	/** An original, kept aside. */
	archived: (uid: Uid, compaction: string, group: string, id: string): Key => [
		scopeOf(uid),
		'memory-archive',
		compaction,
		group,
		id,
	],
	archive: (uid: Uid, compaction: string, group: string): Key => [scopeOf(uid), 'memory-archive', compaction, group],
}

export interface MemoryRecord extends Memory {
	/** Hash of the key of the call that stored it. */
	call?: string
	/** Set where a compaction made it: where its originals are. */
	made_by?: { compaction: string; group: string }
}

export interface CallRecord {
	id: string
	created_at: string
}

export interface VectorRecord {
	embedder: string
	/** Float16, little-endian. */
	bytes: Uint8Array
}

/**
 * `planning`: nothing is changed yet. `applying`, `undoing`: from now on it is brought to its end, whatever happens. The
 * others are the wire's.
 */
export interface CompactionRecord extends Omit<Compaction, 'status'> {
	status: 'planning' | 'applying' | 'completed' | 'failed' | 'undoing' | 'undone'
	/** The agent's name, for events after a restart. */
	agent: string
}

export interface GroupRecord {
	/** The originals, oldest first. */
	ids: string[]
	made: MemoryRecord
}

export function shown({ id, content, tags, created_at }: MemoryRecord): Memory {
	return { id, content, tags, created_at }
}

export function bytesOf(vector: Float32Array): Uint8Array {
	return new Uint8Array(Float16Array.from(vector).buffer)
}

/** `bytes` may stand at an odd place of a larger buffer. */
export function vectorOf(bytes: Uint8Array): Float32Array {
	return Float32Array.from(new Float16Array(bytes.slice().buffer))
}
