import type { AgentRef } from '../../core/plugin.ts'

/** A fact in an agent's long-term memory. */
export interface Memory {
	id: string
	content: string
	tags: string[]
	created_at: string
	/** The older memories that it replaces. */
	replaces?: string[]
	/** The newer memory that replaces it. */
	replaced_by?: string
}

export interface SearchResult extends Memory {
	/** Cosine of query and content, 0–1. */
	similarity: number
}

export interface MemoryPage {
	memories: Memory[]
	/** For the next page; null at the end. */
	next_cursor: string | null
}

export interface MemorySettings {
	max_per_agent: number
	index_mib: number
	/**
	 * What computes the vectors: the embedding model of the agent's provider (the built-in hashing if it has none), the sentence
	 * encoder in the home, or the built-in hashing.
	 */
	embedder: 'provider' | 'local' | 'hashing'
	recall: RecallSettings
}

/** Which memories a model gets with a prompt. */
export interface RecallSettings {
	/** Maximum number; 0 for none. */
	limit: number
	/** Minimum relevance, 0–1. */
	threshold: number
}

/**
 * `completed`: the merged memories replace the originals, which are archived; `failed`: nothing was changed;
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
	/** Number of groups of memories that were merged into one each. */
	merged: number
	error: string | null
}

export interface TextEmbeddings {
	/** Vectors of two embedders with different ids cannot be compared. */
	embedder: string
	vectors: Float32Array[]
}

export interface LongTermMemory {
	/**
	 * Durable and searchable when it settles; an embedding from a server may follow a little later. `key`: the same key returns
	 * the same memory, and so does the same content, with the tags of both. `replaces`: ids of at most 8 memories that this one
	 * contradicts; each is linked to it and ranked below it. Without `replaces`, a text that differs from an older one in a single
	 * number replaces that memory, and storing the text of a replaced memory again makes it current. With an empty list nothing is
	 * replaced. Throws `conflict` at `memory.max_per_agent`, `not_found` for an unknown id.
	 */
	store(
		agent: AgentRef,
		memory: { content: string; tags?: string[]; replaces?: string[]; key?: string },
	): Promise<Memory>
	/**
	 * Best first, a newer memory before the one that it replaces, at most `limit` (1–100, else `invalid_request`); with `tags`
	 * only memories that have all of them.
	 */
	search(agent: AgentRef, query: string, limit: number, tags?: string[]): Promise<SearchResult[]>
	/**
	 * The memories that match a prompt, best first, as `memory.recall` specifies; none if the agent's config switches this off.
	 * Waits at most 0.5 s for an embedding, and then searches by words alone. After 1 s in all it returns none.
	 */
	related(agent: AgentRef, prompt: string): Promise<Memory[]>
	/**
	 * Embeddings of texts that are not stored, made by the embedder of the agent's memories: a vector of length 1 for each text, of
	 * which the first 8,000 characters count. Rejects when `signal` aborts. Throws `embedding_failed`.
	 */
	embed(agent: AgentRef, texts: readonly string[], signal: AbortSignal): Promise<TextEmbeddings>
	/** Returns false if no memory has this id. Also deletes the originals from which a compaction made it. */
	forget(agent: AgentRef, id: string): Promise<boolean>
	count(agent: AgentRef): Promise<number>
	/** Newest first, those after `cursor` if given; fewer than `limit` if they are large. */
	list(agent: AgentRef, options: { limit: number; cursor?: string }): Promise<MemoryPage>
	/** Starts in the background. Throws `conflict` while one is running. */
	compact(agent: AgentRef): Promise<Compaction>
	/** Newest first. */
	compactions(agent: AgentRef): Promise<Compaction[]>
	/** Throws `not_found`, and `conflict` unless it is the latest completed one. */
	undo(agent: AgentRef, compaction_id: string): Promise<Compaction>
}

declare module '../../core/plugin.ts' {
	interface Services {
		memory: LongTermMemory
	}
}

export type MemoryCode = 'embedding_failed'

declare module '../../core/errors.ts' {
	interface ErrorCodes extends Record<MemoryCode, true> {}
}

declare module '../../config/types.ts' {
	interface Config {
		memory: MemorySettings
	}
}
