/**
 * Finds many patterns in one pass over a text, in a time that hardly depends on how many they are: the multi-pattern
 * search of Wu and Manber. A window of eight code units moves over the text; the three at its end tell by how many units
 * it may move on, and only where they end the beginning of a pattern is anything compared.
 */
import { SHORTEST } from './forms.ts'

const BLOCK = 3
const FARTHEST = SHORTEST - BLOCK + 1
/** Of a longer pattern this much is enough: what agrees beyond is taken out as far as it does. */
const ENOUGH = 256
/** Of one that was cut off with an ellipsis, as we do where a text is too long. */
const ENOUGH_OF_CUT = 16
const ELLIPSIS = 0x2026
/** Comparisons beyond that for each unit of a text. A secret that repeats itself, in a text that does too, would take ever more. */
const PATIENCE = 64

/** A piece of a text, from `start` up to and not including `end`. */
export interface Span {
	start: number
	end: number
	/** What `add` was given for the pattern; of several that overlap, for the one that reached farthest. */
	owner: string
}

export interface Found {
	/** In order; they do not overlap. */
	spans: readonly Span[]
	/** From here on the text may be the beginning of a pattern, of which it has eight units at least; its length where none is. */
	open: number
}

interface Pattern {
	owner: string
	/** Code units, folded. */
	units: Uint16Array
}

const none: readonly Span[] = []

export class Matcher {
	/** By the lowest five bits of three units, which are the same for both cases of a letter. */
	readonly #moves = new Uint8Array(1 << 15).fill(FARTHEST)
	/** Patterns whose window ends with that block. */
	readonly #endings = new Map<number, Pattern[]>()
	readonly #byFirst = new Map<number, Pattern[]>()
	/** Set by `#reach` where the text ended before the pattern did. */
	#ranOut = false
	#patience = 0

	/** `pattern` has at least `SHORTEST` units. */
	add(pattern: string, owner: string): void {
		const units = Uint16Array.from({ length: pattern.length }, (_, at) => fold(pattern.charCodeAt(at)))
		for (let end = BLOCK - 1; end < SHORTEST; end++) {
			const block = blockAt(pattern, end)
			this.#moves[block] = Math.min(this.#moves[block] as number, SHORTEST - 1 - end)
		}
		push(this.#endings, blockAt(pattern, SHORTEST - 1), { owner, units })
		push(this.#byFirst, units[0] as number, { owner, units })
	}

	/** `except`: owners whose patterns are not looked for. */
	find(text: string, except?: ReadonlySet<string>): Found {
		let spans: Span[] | undefined
		let open = text.length
		this.#patience = PATIENCE * text.length
		for (let at = SHORTEST - 1; at < text.length;) {
			const block = blockAt(text, at)
			const move = this.#moves[block] as number
			if (move > 0) {
				at += move
				continue
			}
			const start = at - SHORTEST + 1
			for (const pattern of this.#endings.get(block) ?? []) {
				if (except?.has(pattern.owner)) continue
				this.#ranOut = false
				const end = this.#reach(text, start, pattern.units)
				if (this.#ranOut) open = Math.min(open, start)
				if (end > 0) join((spans ??= []), { start, end, owner: pattern.owner })
				if (this.#patience < 0) {
					join((spans ??= []), { start, end: text.length, owner: pattern.owner })
					return { spans, open: Math.min(open, start) }
				}
			}
			at++
		}
		return { spans: spans ?? none, open }
	}

	/** Where, in the last few units, which are too few for the window, a pattern may begin; the text's length where none does. */
	openAtEnd(text: string, except?: ReadonlySet<string>): number {
		for (let start = Math.max(0, text.length - SHORTEST + 1); start < text.length; start++) {
			for (const { owner, units } of this.#byFirst.get(fold(text.charCodeAt(start))) ?? []) {
				if (except?.has(owner)) continue
				this.#ranOut = false
				this.#reach(text, start, units)
				if (this.#ranOut) return start
			}
		}
		return text.length
	}

	/** How far the text agrees with a pattern; -1 where that is not far enough. */
	#reach(text: string, start: number, units: Uint16Array): number {
		let at = start
		let end = start
		let agreed = 0
		while (agreed < units.length) {
			if (at >= text.length) {
				this.#ranOut = true
				break
			}
			if (fold(text.charCodeAt(at)) === units[agreed]) {
				agreed++
				end = ++at
				continue
			}
			if (agreed >= ENOUGH_OF_CUT && text.charCodeAt(at) === ELLIPSIS) return end
			const filler = agreed < SHORTEST ? 0 : fillerAt(text, at)
			if (filler === 0) break
			at += filler
		}
		this.#patience -= Math.max(0, agreed - ENOUGH)
		return agreed >= Math.min(units.length, ENOUGH) ? end : -1
	}
}

function join(spans: Span[], span: Span): void {
	const last = spans.at(-1)
	if (!last || span.start >= last.end) spans.push(span)
	else if (span.end > last.end) Object.assign(last, { end: span.end, owner: span.owner })
}

function blockAt(text: string, end: number): number {
	return ((text.charCodeAt(end - 2) & 31) << 10) | ((text.charCodeAt(end - 1) & 31) << 5) | (text.charCodeAt(end) & 31)
}

/** Lower case, of ASCII letters only: others may change their length. */
function fold(unit: number): number {
	return unit >= 0x41 && unit <= 0x5a ? unit | 0x20 : unit
}

/**
 * How many units at `at` are no part of any text: a line break, also one that JSON has escaped, with the indentation
 * behind it, or characters that do not show.
 */
function fillerAt(text: string, at: number): number {
	let end = at
	for (;;) {
		const next = afterBreak(text, end)
		if (next === end) break
		end = next
	}
	if (end > at) while (isBlank(text.charCodeAt(end))) end++
	while (isUnseen(text.charCodeAt(end))) end++
	return end - at
}

function afterBreak(text: string, at: number): number {
	const unit = text.charCodeAt(at)
	if (unit === 0x0a || unit === 0x0d) return at + 1
	if (unit !== 0x5c) return at
	let end = at
	while (text.charCodeAt(end) === 0x5c) end++
	const escaped = text.charCodeAt(end)
	if (escaped === 0x6e || escaped === 0x72) return end + 1
	// The text may end in the middle of it.
	return Number.isNaN(escaped) ? end : at
}

function isBlank(unit: number): boolean {
	return unit === 0x20 || unit === 0x09
}

function isUnseen(unit: number): boolean {
	return (unit >= 0x200b && unit <= 0x200d) || unit === 0x2060 || unit === 0xfeff || unit === 0xad
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
	const list = map.get(key)
	if (list) list.push(value)
	else map.set(key, [value])
}
