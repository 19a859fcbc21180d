/** What the main thread and the index thread say to each other. */

/** A memory, for the index. */
export interface Row {
	id: string
	content: string
	tags: string[]
	/** When it was stored, in milliseconds since 1970. */
	at: number
	/** Made by the embedder; not sent where that is the built-in one. */
	vector?: Float32Array
}

export interface Question {
	text: string
	limit: number
	/** Made by the embedder; without one only the keyword leg answers, unless the embedder is the built-in one. */
	vector?: Float32Array
	/** Only memories that have all of these. */
	tags: readonly string[]
}

export interface Hit {
	id: string
	/** 0–1; null where there is no vector yet. */
	similarity: number | null
}

export interface IndexStatus {
	memories: number
	/** Those that the vector leg knows. */
	vectors: number
	/** Of them, those in the graph; the others are looked at one by one. */
	in_graph: number
	/** The graph is read from its file rather than made anew. */
	from_file: boolean
}

/** What the index thread can be asked: for each call its parameters and its answer. */
export interface IndexCalls {
	/** Begins to fill the index of an agent; what there was of it is thrown away. */
	begin: [{ uid: string; embedder: string }, void]
	/** Rows in the order of storing, while it is being filled. */
	fill: [{ uid: string; rows: Row[] }, void]
	/** From now on it answers. */
	ready: [{ uid: string }, void]
	/** False, and nothing done, where the thread does not hold that agent's index (any more). */
	add: [{ uid: string; rows: Row[] }, boolean]
	vectors: [{ uid: string; embedder: string; vectors: { id: string; vector: Float32Array }[] }, boolean]
	remove: [{ uid: string; ids: string[] }, boolean]
	/** Null where it does not hold that agent's index. */
	search: [{ uid: string; question: Question }, Hit[] | null]
	/** Groups of at least two that are alike, oldest first; none is in two groups. */
	groups: [{ uid: string; ids: string[]; floor: number; most: number }, string[][] | null]
	/** By the built-in embedder. */
	similarity: [{ text: string; contents: string[] }, number[]]
	status: [{ uid: string }, IndexStatus | null]
	/** Forgets the index, without its file; the file too where the agent is gone. */
	drop: [{ uid: string; file: boolean }, void]
	/** Saves what is worth it. */
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
	/** The thread has let go of that agent's index. */
	| { evicted: string }

export interface IndexSettings {
	/** Where the files of graphs lie. */
	folder: string
	/** How many mebibytes the indexes may hold together. */
	index_mib: number
}
