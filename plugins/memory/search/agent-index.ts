/** The search indexes of one agent: keywords and vectors, and the fusion of their results. */
import { HASHING, HASHING_DIMENSIONS, hashTerms } from '../hashing.ts'
import type { Language } from '../languages.ts'
import { queryOf, termsOf } from '../words.ts'
import { fuse } from './fusion.ts'
import type { Similar } from './fusion.ts'
import { filesOf, readManifest, saveGraph } from './files.ts'
import { Graph } from './graph.ts'
import { KeywordIndex } from './keywords.ts'
import { nearest } from './nearest.ts'
import type { Hit, IndexStatus, SearchQuery, VectorRow } from './protocol.ts'
import { Vectors } from './vectors.ts'

/** From this number of vectors on, a graph is built; fewer are scanned faster. */
const GRAPH_FROM = 4_096
/** Number of changes after which the file of a graph is saved early. */
const SAVE_AFTER = 4_096
/** Removed memories keep their ordinal and postings until there are at least this many, and more of them than others. */
const MAX_REMOVED = 4_096
/** Candidates of each index, unless more results are requested. */
const CANDIDATES = { words: 100, vectors: 40 }

/** Candidates from the graph per group member, since some of them are already in other groups. */
const GROUP_CANDIDATES = 4

/** The weight of the built-in embedder relative to the keywords: low, and higher the more words of the query are unknown. */
const HASHING_WEIGHT = { least: 0.05, unknown: 0.3 }
/** Measured with a small sentence encoder; recall falls slowly on both sides. */
const EMBEDDER_WEIGHT = 0.5
/** Below this cosine a result of the built-in embedder is ignored. */
const HASHING_FLOOR = 0.2

/** Unknown terms of a query that are corrected. */
const MAX_CORRECTED = 4

export class AgentIndex {
	readonly uid: string
	readonly embedder: string
	readonly #folder: string
	readonly #keywords = new KeywordIndex()
	#vectors: Vectors | undefined
	#graph: Graph | undefined
	#isFromFile = false
	#isReady = false
	readonly #ids: string[] = []
	readonly #ordinals = new Map<string, number>()
	readonly #tags = new Map<string, Set<number>>()
	readonly #languages = new Map<Language, number>()

	constructor(uid: string, embedder: string, folder: string) {
		this.uid = uid
		this.embedder = embedder
		this.#folder = folder
		if (embedder === HASHING) this.#vectors = new Vectors(HASHING_DIMENSIONS)
	}

	get isReady(): boolean {
		return this.#isReady
	}

	/** True if it should be filled again, without the removed memories. */
	get isMostlyRemoved(): boolean {
		const removed = this.#ids.length - this.#ordinals.size
		return this.#isReady && removed >= MAX_REMOVED && removed > this.#ordinals.size
	}

	/** Approximate size in memory. */
	get bytes(): number {
		return this.#keywords.bytes + (this.#vectors?.bytes ?? 0) + (this.#graph?.bytes ?? 0) + this.#ids.length * 180
	}

	get status(): IndexStatus {
		return {
			memories: this.#ordinals.size,
			vectors: this.#vectors?.count ?? 0,
			in_graph: this.#graph?.size ?? 0,
			from_file: this.#isFromFile,
		}
	}

	/** An existing row gets the tags. */
	add(row: VectorRow): void {
		const known = this.#ordinals.get(row.id)
		if (known !== undefined) return this.#tag(known, row.tags)
		const { terms, language } = termsOf(row.content, this.#mainLanguage())
		this.#languages.set(language, (this.#languages.get(language) ?? 0) + 1)
		const ordinal = this.#keywords.add(terms, row.at)
		this.#ids[ordinal] = row.id
		this.#ordinals.set(row.id, ordinal)
		this.#tag(ordinal, row.tags)
		if (this.embedder === HASHING) this.#setVector(ordinal, hashTerms(terms))
		else if (row.vector) this.#setVector(ordinal, row.vector)
	}

	#tag(ordinal: number, tags: readonly string[]): void {
		for (const tag of tags) {
			let tagged = this.#tags.get(tag)
			if (!tagged) this.#tags.set(tag, (tagged = new Set()))
			tagged.add(ordinal)
		}
	}

	/** Does nothing if there is no such memory. */
	setVector(id: string, vector: Float32Array): void {
		const ordinal = this.#ordinals.get(id)
		if (ordinal !== undefined) this.#setVector(ordinal, vector)
	}

	remove(id: string): void {
		const ordinal = this.#ordinals.get(id)
		if (ordinal === undefined) return
		this.#ordinals.delete(id)
		this.#ids[ordinal] = ''
		this.#keywords.remove(ordinal)
		this.#vectors?.remove(ordinal)
		this.#graph?.remove(ordinal)
		for (const [tag, tagged] of this.#tags) {
			tagged.delete(ordinal)
			if (tagged.size === 0) this.#tags.delete(tag)
		}
	}

	/** All its rows are present: loads the graph from its file, or begins to build one. */
	ready(): void {
		this.#isReady = true
		this.#openGraph()
	}

	/** Continues building the graph for about this long. True if there is more to do. */
	work(milliseconds: number): boolean {
		if (!this.#isReady || !this.#graph) return false
		if (this.#graph.work(milliseconds)) return true
		if (this.#graph.changes >= SAVE_AFTER) this.save()
		return false
	}

	/** Saves the graph if it has changed since. A file that cannot be written only slows down the next start. */
	save(): void {
		if (!this.#graph || this.#graph.changes === 0 || this.#graph.size < GRAPH_FROM / 2) return
		this.#graph.changes = 0 // before the attempt: one that fails is repeated after as many changes again
		const ids = this.#graph.labels.map((ordinal) => this.#ids[ordinal] ?? '')
		const dimensions = this.#vectors?.dimensions ?? 0
		try {
			saveGraph(this.#folder, this.uid, this.#graph, { embedder: this.embedder, dimensions, ids })
		} catch (error) {
			process.emitWarning(`the graph of ${this.uid} was not saved: ${String(error)}`)
		}
	}

	search({ text, limit, vector, tags, threshold }: SearchQuery): Hit[] {
		const allowed = tags.length === 0 ? undefined : this.#withAllTags(tags)
		const terms = queryOf(text, [...this.#languages.keys()], this.#mainLanguage())
		const isBuiltIn = this.embedder === HASHING
		const most = (least: number): number => Math.max(limit, least)
		const corrected = this.#withCorrections(terms)
		const queryVector = isBuiltIn ? hashTerms(terms.flat(), (term) => this.#keywords.weightOf(term)) : vector
		const weight = isBuiltIn ? this.#hashingWeight(terms) : EMBEDDER_WEIGHT
		const queryTerms = this.#keywords.find(corrected)
		const byWord = this.#keywords.search(queryTerms, {
			limit,
			margin: queryVector ? weight : 0,
			most: most(CANDIDATES.words),
			allowed: allowed && ((ordinal) => allowed.has(ordinal)),
		})
		const similar = queryVector && this.#similarTo(queryVector, most(CANDIDATES.vectors), weight, allowed)
		const unweighted = isBuiltIn ? hashTerms(termsOf(text, this.#mainLanguage()).terms) : vector
		const similarity = unweighted && this.#similarityTo(unweighted)
		const found = fuse(byWord, similar, limit)
		const isRelevant = (ordinal: number): boolean =>
			threshold === undefined ||
			this.#keywords.overlap(ordinal, queryTerms) >= threshold ||
			(!isBuiltIn && similar !== undefined && similar.closeness(similar.cosine(ordinal)) >= threshold)
		return found.filter(isRelevant).map((ordinal) => ({
			id: this.#ids[ordinal] as string,
			similarity: similarity?.(ordinal) ?? null,
		}))
	}

	/**
	 * Groups of memories that are at least as similar as `floor` to the oldest of their group, 2 to `most` in each. `ids`: the
	 * memories to compare. Yields between two of them, since it takes long.
	 */
	*groups(ids: readonly string[], floor: number, most: number): Generator<undefined, string[][]> {
		const free = new Set(ids.flatMap((id) => this.#ordinals.get(id) ?? []))
		const groups: string[][] = []
		for (const seed of [...free].toSorted((a, b) => a - b)) {
			yield
			const vectors = this.#vectors
			if (!free.has(seed) || !vectors?.has(seed)) continue
			const scale = 1 / Math.sqrt(vectors.codes(seed).reduce((sum, code) => sum + code * code, 0))
			const query = Float32Array.from(vectors.codes(seed), (code) => code * scale)
			const around = this.#graph?.near(query, most * GROUP_CANDIDATES).filter((ordinal) => free.has(ordinal)) ?? free
			const group = vectors.scan(vectors.cosinesWith(query), most, floor, around).map(({ ordinal }) => ordinal)
			if (group.length < 2) continue
			for (const ordinal of group) free.delete(ordinal)
			groups.push(group.toSorted((a, b) => a - b).map((ordinal) => this.#ids[ordinal] as string))
		}
		return groups
	}

	/** Relative to the mean cosine of the memories, so that embedders whose cosines lie close together count like others. */
	#similarTo(query: Float32Array, most: number, weight: number, allowed?: ReadonlySet<number>): Similar | undefined {
		const vectors = this.#vectors
		if (!vectors || query.length !== vectors.dimensions) return undefined
		const floor = this.embedder === HASHING ? HASHING_FLOOR : 0
		const cosine = vectors.cosinesWith(query)
		const found = nearest(vectors, this.#graph, { query, cosine, most, floor, allowed })
		const mean = vectors.meanCosine(query)
		let highest = 0
		for (const { score } of found) if (score > highest) highest = score
		const best = highest - mean
		return {
			found,
			weight,
			cosine: (ordinal) => (vectors.has(ordinal) ? cosine(ordinal) : mean),
			relative: (score) => (best <= 0 ? 0 : Math.max(0, score - mean) / best),
			closeness: (score) => (mean >= 1 ? 0 : Math.min(1, Math.max(0, score - mean) / (1 - mean))),
		}
	}

	#setVector(ordinal: number, vector: Float32Array): void {
		this.#vectors ??= new Vectors(vector.length)
		if (vector.length !== this.#vectors.dimensions) return
		this.#vectors.set(ordinal, vector)
		if (!this.#isReady) return
		if (this.#graph) this.#graph.add(ordinal)
		else this.#openGraph()
	}

	#openGraph(): void {
		const vectors = this.#vectors
		if (!vectors || vectors.count < GRAPH_FROM) return
		const manifest = readManifest(this.#folder, this.uid, { embedder: this.embedder, dimensions: vectors.dimensions })
		if (manifest) {
			const ordinals = manifest.ids.map((id) => this.#ordinals.get(id) ?? -1)
			const live = ordinals.filter((ordinal) => ordinal >= 0).length
			// Removed entries slow the graph down; if most are removed, it is rebuilt.
			if (live * 2 > ordinals.length) this.#graph = Graph.load(vectors, filesOf(this.#folder, this.uid).graph, ordinals)
		}
		this.#isFromFile = this.#graph !== undefined
		this.#graph ??= new Graph(vectors)
		for (let ordinal = 0; ordinal < this.#ids.length; ordinal++) if (vectors.has(ordinal)) this.#graph.add(ordinal)
	}

	#similarityTo(query: Float32Array): ((ordinal: number) => number | null) | undefined {
		const vectors = this.#vectors
		if (!vectors || query.length !== vectors.dimensions) return undefined
		const cosine = vectors.cosinesWith(query)
		return (ordinal) => (vectors.has(ordinal) ? similarityOf(cosine(ordinal)) : null)
	}

	/** Replaces unknown terms by similar known ones. Only a few, since it scans all known terms. */
	#withCorrections(terms: readonly string[][]): string[][] {
		let unknown = 0
		return terms.map((forms) => {
			if (forms.some((form) => this.#keywords.has(form)) || ++unknown > MAX_CORRECTED) return forms
			return [...new Set(forms.flatMap((form) => this.#keywords.similarTerms(form)))]
		})
	}

	/** Terms without trigrams, such as pairs of Chinese characters, gain nothing from the built-in embedder. */
	#hashingWeight(terms: readonly string[][]): number {
		let all = 0
		let withTrigrams = 0
		let unknown = 0
		for (const forms of terms) {
			const weight = Math.max(...forms.map((form) => this.#keywords.weightOf(form)))
			all += weight
			if (forms.every(({ length }) => length < 3)) continue
			withTrigrams += weight
			if (!forms.some((form) => this.#keywords.has(form))) unknown += weight
		}
		if (all === 0) return HASHING_WEIGHT.least + HASHING_WEIGHT.unknown
		return (HASHING_WEIGHT.least * withTrigrams + HASHING_WEIGHT.unknown * unknown) / all
	}

	#withAllTags(tags: readonly string[]): Set<number> {
		const [first = new Set<number>(), ...others] = tags.map((tag) => this.#tags.get(tag) ?? new Set<number>())
		return others.reduce((both, one) => both.intersection(one), first)
	}

	/** The language of most of its memories. */
	#mainLanguage(): Language | undefined {
		let main: Language | undefined
		let most = 0
		for (const [language, count] of this.#languages) if (count > most) [main, most] = [language, count]
		return main
	}
}

/** The similarity that callers get: 0 to 1, with four digits. */
export function similarityOf(cosine: number): number {
	return Math.round(Math.min(1, Math.max(0, cosine)) * 10_000) / 10_000
}
