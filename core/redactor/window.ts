import { mayBeFiller } from './filler.ts'
import { SHORTEST } from './forms.ts'

const BLOCK = 3
const FARTHEST = SHORTEST - BLOCK + 1
/** Bits of the filter for each pattern: one window in that many passes it without need. */
/** Units that are looked at where a window agrees: eight of an encoding hold little of a secret, and many begin alike. */
export const LONG = 16
/** Bits of a filter for each pattern: one window in that many passes it without need. */
const BITS = 16
const FEWEST_BITS = 1 << 12

/**
 * Says where in a text none of many patterns can begin, by looking at a window of `SHORTEST` code units at a time: the three
 * at its end tell by how many units it may move on (Wu and Manber's search), and where they are the end of the beginning of
 * a pattern, hashes of the whole window and of what follows tell whether it is likely to be one. Blind to the case of ASCII
 * letters.
 */
export class Window {
	/** By the lowest five bits of three units, which are the same for both cases of a letter. */
	readonly #moves = new Uint8Array(1 << 15).fill(FARTHEST)
	/** Of the first `SHORTEST` units of all patterns. */
	readonly #beginnings: Filter
	/** Of the first `LONG` units of the patterns that have so many, and the first `SHORTEST` of the others. */
	readonly #longer: Filter
	/** It stays good for so many patterns. */
	readonly capacity: number

	/** `patterns`: for how many it is made. */
	constructor(patterns: number) {
		const bits = Math.max(FEWEST_BITS, 2 ** Math.ceil(Math.log2(patterns * BITS)))
		this.capacity = bits / BITS
		this.#beginnings = new Filter(bits)
		this.#longer = new Filter(bits)
	}

	/** `pattern` has at least `SHORTEST` units; those behind the first `LONG` say nothing. */
	add(pattern: string): void {
		for (let end = BLOCK - 1; end < SHORTEST; end++) {
			const block = blockAt(pattern, end)
			this.#moves[block] = Math.min(this.#moves[block] as number, SHORTEST - 1 - end)
		}
		const beginning = hash(0, pattern, 0, SHORTEST)
		this.#beginnings.add(beginning)
		this.#longer.add(pattern.length < LONG ? beginning : hash(beginning, pattern, SHORTEST, LONG))
	}

	/** Where a pattern may begin, from `start` on; -1 where none does. */
	next(text: string, start: number): number {
		for (let at = start + SHORTEST - 1; at < text.length;) {
			const move = this.#moves[blockAt(text, at)] as number
			if (move === 0 && this.#mayBegin(text, at - SHORTEST + 1)) return at - SHORTEST + 1
			at += move || 1
		}
		return -1
	}

	#mayBegin(text: string, start: number): boolean {
		const middle = start + SHORTEST
		const end = start + LONG
		const beginning = hash(0, text, start, middle)
		if (!this.#beginnings.has(beginning)) return false
		if (this.#longer.has(beginning)) return true
		for (let at = middle; at < end; at++) if (mayBeFiller(text.charCodeAt(at))) return true
		return this.#longer.has(hash(beginning, text, middle, end))
	}
}

/** A set of hashes that may also have others. */
class Filter {
	readonly #words: Uint32Array
	readonly #mask: number

	constructor(bits: number) {
		this.#words = new Uint32Array(bits / 32)
		this.#mask = bits - 1
	}

	add(hashed: number): void {
		const bit = mixed(hashed) & this.#mask
		this.#words[bit >>> 5] = (this.#words[bit >>> 5] as number) | (1 << (bit & 31))
	}

	has(hashed: number): boolean {
		const bit = mixed(hashed) & this.#mask
		return ((this.#words[bit >>> 5] as number) & (1 << (bit & 31))) !== 0
	}
}

function blockAt(text: string, end: number): number {
	return ((text.charCodeAt(end - 2) & 31) << 10) | ((text.charCodeAt(end - 1) & 31) << 5) | (text.charCodeAt(end) & 31)
}

/** The bit that tells the cases of letters apart is set in all units. `before`: the hash of what stands before. */
function hash(before: number, text: string, start: number, end: number): number {
	let hashed = before
	for (let at = start; at < end; at++) hashed = Math.imul(hashed ^ (text.charCodeAt(at) | 0x20), 0x5bd1e995)
	return hashed
}

/** All bits count in the lowest ones. */
function mixed(hashed: number): number {
	return Math.imul(hashed ^ (hashed >>> 15), 0x2c1b3c6d) >>> 8
}
