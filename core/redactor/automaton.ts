/** How many units of a pattern are part of the automaton; the rest of a longer pattern is compared after a match of those. */
const HEAD = 64

/** Receives a pattern that was found, and what it returned for the one before. */
export type Found<T> = (before: T | undefined, pattern: number, start: number, end: number) => T | undefined

/**
 * Finds many patterns in one pass over a text (Aho and Corasick, "Efficient string matching", 1975), with every transition
 * in a table: each unit of a text costs one step, whatever the text is, so that the time tells nothing about how much of a
 * pattern a text holds.
 */
export class Automaton {
	/** Of the table. */
	readonly bytes: number
	readonly #tails: readonly string[]
	readonly #lengths: readonly number[]
	/** The column of each unit in the table; 0 for a unit that is in no pattern. */
	readonly #columns = new Map<number, number>()
	readonly #ascii = new Uint16Array(128)
	readonly #width: number
	/** The next state by state and column. */
	readonly #next: Uint32Array
	/** The patterns whose heads end in a state, and whether any shorter one does that ends there too. */
	readonly #ends: (number[] | undefined)[] = [undefined]
	/** The nearest state along the suffix links in which a head ends, itself included; 0 if there is none. */
	readonly #found: Uint32Array
	readonly #shorter: Uint32Array

	constructor(patterns: readonly string[]) {
		this.#lengths = patterns.map((pattern) => pattern.length)
		this.#tails = patterns.map((pattern) => pattern.slice(HEAD))
		const heads = patterns.map((pattern) => pattern.slice(0, HEAD))
		for (const head of heads) for (let at = 0; at < head.length; at++) this.#addColumn(head.charCodeAt(at))
		this.#width = this.#columns.size + 1
		const states = 1 + heads.reduce((sum, head) => sum + head.length, 0)
		this.#next = new Uint32Array(states * this.#width)
		this.#found = new Uint32Array(states)
		this.#shorter = new Uint32Array(states)
		for (const [index, head] of heads.entries()) this.#addHead(head, index)
		this.#link()
		this.bytes = this.#next.byteLength
	}

	/** Calls `found` for each complete pattern, in the order of their ends; returns its last result. They may overlap. */
	search<T>(text: string, found: Found<T>): T | undefined {
		const width = this.#width
		const next = this.#next
		let result: T | undefined
		let state = 0
		for (let at = 0; at < text.length; at++) {
			const unit = text.charCodeAt(at)
			const column = unit < 128 ? this.#ascii[unit] : this.#columns.get(unit)
			state = next[state * width + (column ?? 0)] as number
			for (let end = this.#found[state] as number; end !== 0; end = this.#found[this.#shorter[end] as number] as number)
				for (const pattern of this.#ends[end] ?? []) {
					const tail = this.#tails[pattern] as string
					if (!isAt(text, at + 1, tail)) continue
					const length = this.#lengths[pattern] as number
					result = found(result, pattern, at + 1 + tail.length - length, at + 1 + tail.length)
				}
		}
		return result
	}

	#addColumn(unit: number): void {
		if (this.#columns.has(unit)) return
		const column = this.#columns.size + 1
		this.#columns.set(unit, column)
		if (unit < 128) this.#ascii[unit] = column
	}

	#addHead(head: string, pattern: number): void {
		let state = 0
		for (let at = 0; at < head.length; at++) {
			const cell = state * this.#width + (this.#columns.get(head.charCodeAt(at)) as number)
			// No transition leads back to the root yet, so 0 marks a free cell.
			this.#next[cell] ||= this.#ends.push(undefined) - 1
			state = this.#next[cell] as number
		}
		;(this.#ends[state] ??= []).push(pattern)
	}

	/** Fills the free cells of each state, level by level, with the transitions of its longest proper suffix. */
	#link(): void {
		const queue = [0]
		for (let at = 0; at < queue.length; at++) {
			const state = queue[at] as number
			const suffix = this.#shorter[state] as number
			this.#found[state] = this.#ends[state] ? state : (this.#found[suffix] as number)
			for (let column = 1; column < this.#width; column++) {
				const cell = state * this.#width + column
				const onSuffix = state === 0 ? 0 : (this.#next[suffix * this.#width + column] as number)
				const child = this.#next[cell] as number
				if (child === 0) this.#next[cell] = onSuffix
				else {
					this.#shorter[child] = onSuffix
					queue.push(child)
				}
			}
		}
	}
}

/** Compares all of it, also where the beginning differs: the time must not tell how much agrees. */
function isAt(text: string, start: number, tail: string): boolean {
	if (start + tail.length > text.length) return false
	let difference = 0
	for (let at = 0; at < tail.length; at++) difference |= text.charCodeAt(start + at) ^ tail.charCodeAt(at)
	return difference === 0
}
