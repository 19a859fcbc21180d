/**
 * The keyword index: BM25 over the terms of memories, in the order in which they were stored. The neighbours of a memory
 * count for it too, with less weight: an answer often follows its question. This is computed during the search, so nothing
 * has to be rewritten when a neighbour is added or removed.
 */
import { TopScores } from './top-scores.ts'
import type { Scored } from './top-scores.ts'
import { grown } from './grown.ts'
import { isTypo } from './spelling.ts'

/** Tuned on conversations other than those of the evaluation; recall is flat around all of these values. */
const K1 = 0.9
const B = 0.5
/** The weight of a term in the first, second … neighbour on either side. */
const NEAR = [0.4, 0.3, 0.2, 0.1]
/** Memories further apart than this are not neighbours. */
const NEAR_MS = 3_600_000
/** A term in more memories than this does not count for neighbours, and only adds to the scores of rarer terms. */
const COMMON = 512
/** Postings after which the remaining terms, the most common ones, are skipped. */
const MAX_POSTINGS = 32_768

/** Total weight of shared terms from which two texts fully count as related: a rare word and a common one. */
const EVIDENCE = 1.2

/** A shorter term is one typo away from too many others. */
const CORRECTED_CHARACTERS = 5
const CORRECTIONS = 3

/** A posting is `ordinal * COUNTS + count`, an integer of 32 bits. */
const COUNT_BITS = 6
const COUNTS = 1 << COUNT_BITS

/** In the order of their ordinals. */
type Postings = readonly number[] | Uint32Array

/** The postings of a term in more than `COMMON` memories: half the size of an array of numbers, and quicker to read. */
interface CommonTerm {
	items: Uint32Array
	length: number
}

/** A term of a query. */
interface Term {
	/** The postings of each of its spellings that some memory has. */
	lists: Postings[]
	/** The `weightOf` its rarest spelling. */
	weight: number
}

export interface Wanted {
	/** Number of results needed. */
	limit: number
	/** Further results are returned if they are at most this share of the best score below the last needed one. */
	margin: number
	/** Limit of all results. */
	most: number
	/** Filters results. */
	allowed?: ((ordinal: number) => boolean) | undefined
}

export interface Matches {
	/** In no order. */
	found: readonly Scored[]
	/** The highest score; 1 if nothing is found. */
	best: number
	/** The lowest score of the needed results; 0 if fewer are found. */
	needed: number
}

export class KeywordIndex {
	readonly #postings = new Map<string, number[] | CommonTerm>()
	#lengths = new Uint32Array(256)
	/** Number of memories right before one that are its neighbours. */
	#back = new Uint8Array(256)
	#lastAt = 0
	#removed = new Uint8Array(256)
	#count = 0
	#live = 0
	#postingCount = 0
	#liveLength = 0
	/** Reused by all searches, like the arrays below, to avoid garbage. All zeros between searches. */
	#scores = new Float32Array(256)
	#near = new Float32Array(256)
	/** The ordinals that get a score, and by ordinal 1 for each of them. */
	#touched = new Uint32Array(256)
	#isTouched = new Uint8Array(256)
	#touchedCount = 0

	/** Approximate size in memory. */
	get bytes(): number {
		return this.#postingCount * 12 + this.#postings.size * 160 + this.#lengths.length * 19
	}

	/** Returns the ordinal. `at`: when it was stored, in milliseconds. */
	add(terms: readonly string[], at: number): number {
		const ordinal = this.#count++
		this.#grow()
		const counts = new Map<string, number>()
		for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1)
		for (const [term, count] of counts) {
			const posting = ordinal * COUNTS + Math.min(count, COUNTS - 1)
			const list = this.#postings.get(term)
			if (!list) this.#postings.set(term, [posting])
			else if (!Array.isArray(list)) append(list, posting)
			else if (list.push(posting) > COMMON) {
				this.#postings.set(term, { items: Uint32Array.from(list), length: list.length })
			}
		}
		this.#postingCount += counts.size
		this.#lengths[ordinal] = terms.length
		const isNear = ordinal > 0 && at - this.#lastAt <= NEAR_MS
		this.#back[ordinal] = isNear ? Math.min(NEAR.length, (this.#back[ordinal - 1] as number) + 1) : 0
		this.#lastAt = at
		this.#liveLength += terms.length
		this.#live++
		return ordinal
	}

	remove(ordinal: number): void {
		if (this.#removed[ordinal] === 1) return
		this.#removed[ordinal] = 1
		this.#live--
		this.#liveLength -= this.#lengths[ordinal] as number
	}

	/** The weight of a term: above 0, and 1 for one in a single memory. */
	weightOf(term: string): number {
		return Math.min(1, this.#idf(this.#postings.get(term)?.length ?? 0) / this.#idf(1))
	}

	/**
	 * The terms of a query, for `search` and `overlap`; valid until the next change. `terms`: the spellings of each, as `queryOf`
	 * returns them.
	 */
	find(terms: readonly string[][]): Term[] {
		return terms.map((forms) => ({
			lists: forms.flatMap((form) => {
				const list = this.#postings.get(form)
				if (!list) return []
				return [Array.isArray(list) ? list : list.items.subarray(0, list.length)]
			}),
			// A term that no memory has counts as the rarest.
			weight: forms.length === 0 ? 1 : Math.max(...forms.map((form) => this.weightOf(form))),
		}))
	}

	/**
	 * The overlap of a memory and a query, 0 to 1: the share of the query's terms that the memory has, or the share of the
	 * memory's terms that the query has, whichever is larger; rare terms count more. A common word alone counts little.
	 */
	overlap(ordinal: number, terms: readonly Term[]): number {
		let asked = 0
		let shared = 0
		for (const { lists, weight } of terms) {
			asked += weight
			if (lists.some((list) => holds(list, ordinal))) shared += weight
		}
		if (shared === 0) return 0
		const share = Math.max(shared / asked, shared / Math.max(1, this.#lengths[ordinal] as number))
		return Math.min(1, share) * Math.min(1, shared / EVIDENCE)
	}

	has(term: string): boolean {
		return this.#postings.has(term)
	}

	/** Known terms that a misspelt one may mean, the most frequent first. */
	similarTerms(term: string): string[] {
		if (term.length < CORRECTED_CHARACTERS || /^\d/.test(term)) return []
		const found: { other: string; count: number }[] = []
		for (const [other, list] of this.#postings) {
			if (other[0] === term[0] && isTypo(term, other)) found.push({ other, count: list.length })
		}
		return found
			.toSorted((a, b) => b.count - a.count)
			.slice(0, CORRECTIONS)
			.map(({ other }) => other)
	}

	search(terms: readonly Term[], wanted: Wanted): Matches {
		const found = terms
			.filter(({ lists }) => lists.length > 0)
			.map(({ lists }) => (lists.length === 1 ? (lists[0] as Postings) : joined(lists)))
			.toSorted((a, b) => a.length - b.length)
		let scanned = 0
		for (const [rank, list] of found.entries()) {
			if (rank > 0 && scanned + list.length > MAX_POSTINGS) break
			scanned += list.length
			if (!(list instanceof Uint32Array)) this.#scoreWithNeighbours(list)
			else {
				if (rank === 0) this.#touch(list, COUNT_BITS)
				this.#scoreTouched(list)
			}
		}
		return this.#collect(wanted)
	}

	/** Returns the best and resets the scores. Finds the needed ones first, since then few others are within the margin. */
	#collect({ limit, margin, most, allowed }: Wanted): Matches {
		const [scores, removed, ordinals, isTouched] = [this.#scores, this.#removed, this.#touched, this.#isTouched]
		const count = this.#touchedCount
		this.#touchedCount = 0
		const first = new TopScores(limit)
		let highest = 0
		let needed = 0
		for (let at = 0; at < count; at++) {
			const ordinal = ordinals[at] as number
			isTouched[ordinal] = 0
			const score = scores[ordinal] as number
			if (removed[ordinal] === 1 || (allowed && !allowed(ordinal))) scores[ordinal] = 0
			else if (score > needed) {
				if (score > highest) highest = score
				first.offer(ordinal, score)
				needed = first.least ?? 0
			}
		}
		const least = needed - margin * highest
		const best = new TopScores(most)
		for (let at = 0; at < count; at++) {
			const ordinal = ordinals[at] as number
			const score = scores[ordinal] as number
			scores[ordinal] = 0
			if (score > 0 && score >= least) best.offer(ordinal, score)
		}
		return { found: best.kept(), best: highest || 1, needed }
	}

	/** The ordinal of an item of `list` is its value without the lowest `bits`. */
	#touch(list: Postings, bits: number): void {
		const [touched, isTouched] = [this.#touched, this.#isTouched]
		let count = this.#touchedCount
		for (let at = 0; at < list.length; at++) {
			const ordinal = (list[at] as number) >>> bits
			if (isTouched[ordinal] === 1) continue
			isTouched[ordinal] = 1
			touched[count++] = ordinal
		}
		this.#touchedCount = count
	}

	/** Adds a score to every memory that has the term, and to its neighbours. */
	#scoreWithNeighbours(list: readonly number[]): void {
		const [scores, near, removed, lengths, back] = [this.#scores, this.#near, this.#removed, this.#lengths, this.#back]
		const idf = this.#idf(list.length)
		const nearness = Math.sqrt(idf / this.#idf(1))
		const perTerm = B / this.#averageLength
		const seen: number[] = []
		for (const posting of list) {
			const ordinal = posting >>> COUNT_BITS
			if (removed[ordinal] === 1) continue
			const amount = (posting & (COUNTS - 1)) / (1 - B + perTerm * (lengths[ordinal] as number))
			if (near[ordinal] === 0) seen.push(ordinal)
			near[ordinal] = (near[ordinal] as number) + amount
			const light = amount * nearness
			for (let distance = back[ordinal] as number; distance > 0; distance--) {
				const other = ordinal - distance
				if (near[other] === 0) seen.push(other)
				near[other] = (near[other] as number) + light * (NEAR[distance - 1] as number)
			}
			for (let distance = 1; distance <= NEAR.length; distance++) {
				const other = ordinal + distance
				if (other >= this.#count || (back[other] as number) < distance) break
				if (near[other] === 0) seen.push(other)
				near[other] = (near[other] as number) + light * (NEAR[distance - 1] as number)
			}
		}
		this.#touch(seen, 0)
		for (const ordinal of seen) {
			const amount = near[ordinal] as number
			near[ordinal] = 0
			scores[ordinal] = (scores[ordinal] as number) + (idf * amount * (K1 + 1)) / (amount + K1)
		}
	}

	/** Adds to the scores of memories that already have one. */
	#scoreTouched(list: Uint32Array): void {
		const [scores, lengths, isTouched] = [this.#scores, this.#lengths, this.#isTouched]
		const idf = this.#idf(list.length) * (K1 + 1)
		// The formula of `#scoreWithNeighbours`, with one division instead of two.
		const base = K1 * (1 - B)
		const perTerm = (K1 * B) / this.#averageLength
		for (let at = 0; at < list.length; at++) {
			const posting = list[at] as number
			const ordinal = posting >>> COUNT_BITS
			if (isTouched[ordinal] === 0) continue
			const count = posting & (COUNTS - 1)
			const amount = (idf * count) / (count + base + perTerm * (lengths[ordinal] as number))
			scores[ordinal] = (scores[ordinal] as number) + amount
		}
	}

	get #averageLength(): number {
		return Math.max(1, this.#liveLength / Math.max(1, this.#live))
	}

	#idf(documents: number): number {
		const all = Math.max(this.#live, documents)
		return Math.log(1 + (all - documents + 0.5) / (documents + 0.5))
	}

	#grow(): void {
		this.#lengths = grown(this.#lengths, this.#count)
		this.#back = grown(this.#back, this.#count)
		this.#removed = grown(this.#removed, this.#count)
		this.#scores = grown(this.#scores, this.#count)
		this.#near = grown(this.#near, this.#count)
		this.#touched = grown(this.#touched, this.#count)
		this.#isTouched = grown(this.#isTouched, this.#count)
	}
}

function holds(list: Postings, ordinal: number): boolean {
	let [from, to] = [0, list.length]
	while (from < to) {
		const middle = (from + to) >>> 1
		if ((list[middle] as number) >>> COUNT_BITS < ordinal) from = middle + 1
		else to = middle
	}
	return from < list.length && (list[from] as number) >>> COUNT_BITS === ordinal
}

function append(term: CommonTerm, posting: number): void {
	term.items = grown(term.items, term.length + 1)
	term.items[term.length++] = posting
}

/** The postings of several spellings of a term, one spelling after the other. */
function joined(lists: readonly Postings[]): Postings {
	const length = lists.reduce((sum, list) => sum + list.length, 0)
	if (length <= COMMON) return lists.flatMap((list) => [...list])
	const all = new Uint32Array(length)
	let from = 0
	for (const list of lists) {
		all.set(list, from)
		from += list.length
	}
	return all
}
