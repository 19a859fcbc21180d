/** The messages between the main thread and the index thread. */

/** A memory, for the index. */
export interface VectorRow {
	id: string
	content: string
	tags: string[]
	/** When it was stored, in milliseconds since 1970. */
	at: number
	/** From the embedder; not sent for the built-in one. */
	vector?: Float32Array
}

export interface SearchQuery {
	text: string
	limit: number
	/** From the embedder. Without it only keywords are searched, unless the embedder is the built-in one. */
	vector?: Float32Array
	/** Only memories that have all of these. */
	tags: readonly string[]
	/**
	 * Only memories at least as relevant, 0–1: by words or, with an embedding model, by meaning, whichever is larger. Unlike
	 * `similarity`, comparable between embedders.
	 */
	threshold?: number
}

export interface Hit {
	id: string
	/** 0–1; null if there is no vector yet. */
	similarity: number | null
}

export interface IndexStatus {
	memories: number
	/** Memories with a vector. */
	vectors: number
	/** Of them, those in the graph; the others are scanned one by one. */
	in_graph: number
	/** The graph was loaded from its file rather than built. */
	from_file: boolean
}

/** The calls of the index thread: each with its parameters and its result. */
export interface IndexCalls {
	/** Starts to fill the index of an agent; discards the previous one. */
	begin: [{ uid: string; embedder: string }, void]
	/** Rows in the order in which they were stored, while the index is being filled. */
	fill: [{ uid: string; rows: VectorRow[] }, void]
	/** The index is complete and can be searched. */
	ready: [{ uid: string }, void]
	/** `add`, `vectors` and `remove` change nothing if the thread does not hold that agent's index. */
	add: [{ uid: string; rows: VectorRow[] }, void]
	vectors: [{ uid: string; embedder: string; vectors: { id: string; vector: Float32Array }[] }, void]
	remove: [{ uid: string; ids: string[] }, void]
	/** Null if it does not hold that agent's index. */
	search: [{ uid: string; query: SearchQuery }, Hit[] | null]
	/** Groups of at least two similar memories, oldest first; no memory is in two groups. Null as for `search`. */
	groups: [{ uid: string; ids: string[]; floor: number; most: number }, string[][] | null]
	/** By the built-in embedder. */
	similarity: [{ text: string; contents: string[] }, number[]]
	/** Vectors of the built-in embedder. */
	hash: [{ texts: string[] }, Float32Array[]]
	status: [{ uid: string }, IndexStatus | null]
	/** Discards the index but not its file; the file too if the agent was deleted. */
	drop: [{ uid: string; file: boolean }, void]
	/** Saves changed graphs. */
	close: [null, void]
}

export type IndexCall = keyof IndexCalls
export type Params<C extends IndexCall> = IndexCalls[C][0]
export type Result<C extends IndexCall> = IndexCalls[C][1]

export interface IndexRequest {
	id: number
	call: IndexCall
	params: unknown
}

export type IndexReply =
	| { id: number; result: unknown }
	| { id: number; error: string }
	/** The thread has evicted that agent's index. */
	| { evicted: string }

export interface IndexSettings {
	/** The folder of the graph files. */
	folder: string
	/** Memory limit of all indexes, in mebibytes. */
	index_mib: number
}
