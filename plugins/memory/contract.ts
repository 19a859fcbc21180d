import type { AgentRef } from '../../core/plugin.ts'

/** A fact that an agent keeps. */
export interface Memory {
	id: string
	content: string
	tags: string[]
	created_at: string
}

export interface SearchResult {
	id: string
	content: string
	/** Cosine of question and content, 0–1. */
	similarity: number
	created_at: string
	tags: string[]
}

export interface MemoryPage {
	memories: Memory[]
	/** For the next page; null at the end. */
	next_cursor: string | null
}

export interface MemorySettings {
	max_per_agent: number
	index_mib: number
}

/**
 * `completed`: what it made stands in place of the originals, which are kept aside; `failed`: nothing was changed;
 * `undone`: the originals are back.
 */
export type CompactionStatus = 'running' | 'completed' | 'failed' | 'undone'

export interface Compaction {
	compaction_id: string
	status: CompactionStatus
	started_at: string
	ended_at: string | null
	memories_before: number
	/** Null until it has ended. */
	memories_after: number | null
	/** How many groups of memories became one each. */
	merged: number
	error: string | null
}

export interface LongTermMemory {
	/**
	 * Durable and findable when it settles; an embedding that a server makes may come a little later. `key`: the same again
	 * means the same memory. Throws `conflict` at `memory.max_per_agent`.
	 */
	store(agent: AgentRef, memory: { content: string; tags?: string[]; key?: string }): Promise<Memory>
	/** Best first, at most `limit` (1–100); with `tags` only those that have all of them. */
	search(agent: AgentRef, query: string, limit: number, tags?: string[]): Promise<SearchResult[]>
	/** False where there is none of this id. What it was made of by compaction is gone as well. */
	forget(agent: AgentRef, id: string): Promise<boolean>
	count(agent: AgentRef): Promise<number>
	/** Newest first, those behind `cursor` where that is given; fewer than `limit` where they are large. */
	list(agent: AgentRef, options: { limit: number; cursor?: string }): Promise<MemoryPage>
	/** Begins in the background. Throws `conflict` while one is under way. */
	compact(agent: AgentRef): Promise<Compaction>
	/** Newest first. */
	compactions(agent: AgentRef): Promise<Compaction[]>
	/** Throws `not_found`, and `conflict` unless it is the latest one that stands. */
	undo(agent: AgentRef, compaction_id: string): Promise<Compaction>
}

declare module '../../core/plugin.ts' {
	interface Services {
		memory: LongTermMemory
	}
}
