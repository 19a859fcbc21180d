import { randomBytes } from 'node:crypto'

/** Units in a pattern's hash: each new unit shifts the 32 bits of the hash by 4. */
const WINDOW = 8
/** Random values by a unit's lower bits, so that nobody can construct texts that collide with patterns. */
const RANDOM = Int32Array.from({ length: 256 }, () => randomBytes(4).readInt32LE())
/** Positions near the middle of a pattern from which its window is chosen. */
const PLACES = 64
/** Units that are compared as one block. */
const BLOCK = 64
/** Bits of the filter per pattern, of which one is set: few texts pass it by chance. */
const BITS_PER_PATTERN = 64
const LEAST_BITS = 8
const MOST_BITS = 22

/** Receives a range of the text that a pattern covers, and its own result for the previous range. */
export type Found<T> = (before: T | undefined, pattern: number, start: number, end: number) => T | undefined

interface Pattern {
	index: number
	text: string
	/** Where its window begins. */
	offset: number
}

interface Range {
	pattern: number
	start: number
	end: number
}

/**
 * Finds many patterns in a text by a hash of the last 8 units at each position (Karp and Rabin, "Efficient randomized
 * pattern-matching algorithms", 1987). Each unit of a text takes the same few steps. A pattern is compared, in blocks, only where
 * its window of 8 units occurs. So the time does not reveal how much of a pattern a text contains.
 */
export class PatternSearch {
	/** Approximate size in memory. */
	readonly bytes: number
	/** By the hash of their windows. */
	readonly #patterns = new Map<number, Pattern[]>()
	/** One bit per group of hashes, so that the map is read only where a pattern is likely. */
	readonly #filter: Uint32Array
	/** Converts a hash to a position in the filter. */
	readonly #shift: number

	/** Each pattern has at least 8 UTF-16 code units. */
	constructor(patterns: readonly string[]) {
		const wanted = Math.ceil(Math.log2(patterns.length * BITS_PER_PATTERN))
		const bits = Math.min(MOST_BITS, Math.max(LEAST_BITS, wanted))
		this.#shift = 32 - bits
		this.#filter = new Uint32Array(2 ** bits / 32)
		for (const [index, text] of patterns.entries()) {
			const offset = windowIn(text)
			let hash = 0
			for (let at = offset; at < offset + WINDOW; at++) hash = hashWith(hash, text.charCodeAt(at))
			const pattern = { index, text, offset }
			const others = this.#patterns.get(hash)
			if (others) others.push(pattern)
			else this.#patterns.set(hash, [pattern])
			const place = placeOf(hash, this.#shift)
			this.#filter[place >>> 5] = (this.#filter[place >>> 5] as number) | (1 << (place & 31))
		}
		this.bytes = patterns.reduce((sum, { length }) => sum + length, this.#filter.byteLength)
	}

	/**
	 * Calls `found` for each range that a pattern covers, in the order of their ends; returns its last result. Overlapping
	 * occurrences of one pattern are one range; those of several overlap.
	 */
	search<T>(text: string, found: Found<T>): T | undefined {
		const ranges = this.#rangesIn(text)
		if (!ranges) return undefined
		ranges.sort((a, b) => a.end - b.end || a.start - b.start)
		let result: T | undefined
		for (const { pattern, start, end } of ranges) result = found(result, pattern, start, end)
		return result
	}

	#rangesIn(text: string): Range[] | undefined {
		const filter = this.#filter
		const shift = this.#shift
		let ranges: Range[] | undefined
		/** The last range of each pattern. */
		let last: Map<number, Range> | undefined
		let hash = 0
		for (let at = 0; at < text.length; at++) {
			hash = hashWith(hash, text.charCodeAt(at))
			const place = placeOf(hash, shift)
			if (((filter[place >>> 5] as number) & (1 << (place & 31))) === 0) continue
			for (const { index, text: pattern, offset } of this.#patterns.get(hash) ?? []) {
				const start = at + 1 - WINDOW - offset
				if (!isAt(text, start, pattern)) continue
				const end = start + pattern.length
				const before = last?.get(index)
				if (before && before.end > start) before.end = end
				else {
					const range = { pattern: index, start, end }
					;(last ??= new Map()).set(index, range)
					;(ranges ??= []).push(range)
				}
			}
		}
		return ranges
	}
}

/** Adds a unit to the hash; the unit before the last 8 is shifted out. */
function hashWith(hash: number, unit: number): number {
	return ((hash << 4) + (RANDOM[(unit ^ (unit >>> 8)) & 255] as number)) | 0
}

/** The position in the filter. The multiplication makes its bits depend on all bits of the hash. */
function placeOf(hash: number, shift: number): number {
	return Math.imul(hash, 0x9e3779b1) >>> shift
}

/** The window with the most different units near the middle: keys have common beginnings and ends, and texts repeat uniform parts. */
function windowIn(pattern: string): number {
	const middle = (pattern.length - WINDOW) >>> 1
	let [best, most] = [middle, 0]
	for (let n = 0; n < PLACES && most < WINDOW; n++) {
		const offset = middle + (n % 2 === 0 ? n / 2 : -(n + 1) / 2)
		if (offset < 0 || offset + WINDOW > pattern.length) continue
		const variety = new Set(pattern.slice(offset, offset + WINDOW)).size
		if (variety > most) [best, most] = [offset, variety]
	}
	return best
}

/**
 * Compares each block completely, even if its beginning differs. So the time reveals only how many blocks are equal, and a block is
 * too long to guess. Without blocks, a text that repeats the window would cost the length of the pattern at each position.
 */
function isAt(text: string, start: number, pattern: string): boolean {
	if (start < 0 || start + pattern.length > text.length) return false
	for (let block = 0; block < pattern.length; block += BLOCK) {
		const end = Math.min(block + BLOCK, pattern.length)
		let difference = 0
		for (let at = block; at < end; at++) difference |= text.charCodeAt(start + at) ^ pattern.charCodeAt(at)
		if (difference !== 0) return false
	}
	return true
}
