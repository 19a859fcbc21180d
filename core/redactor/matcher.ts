/**
 * Finds many patterns in one pass over a text, in a time that does not depend on how many they are: a window
 * (window.ts) tells where one may begin, and a tree of them (tree.ts) tells how far the text agrees with any of them.
 */
import { fillerAt } from './filler.ts'
import { SHORTEST } from './forms.ts'
import { Tree, ownerAt, ownerUnder } from './tree.ts'
import type { Node } from './tree.ts'
import { LONG, Window } from './window.ts'

/** Of a longer pattern this much is enough: what agrees beyond is taken out as far as it does. */
const ENOUGH = 256
/** Of one that was cut off with an ellipsis, as we do where a text is too long. */
const ENOUGH_OF_CUT = 16
const ELLIPSIS = 0x2026
/** Comparisons beyond that for each unit of a text. A secret that repeats itself, in a text that does too, would take ever more. */
const PATIENCE = 64
/** Patterns that went before the window forgets them; they do no harm but take time. */
const FORGOTTEN = 1024

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

/** How far a text agrees with the patterns, on one way through the tree. */
interface Way {
	node: Node
	/** Units of the node's label that agree. */
	within: number
	/** A child that another way has taken: its patterns agree where those of the others have to pass units of the text over. */
	taken: Node | undefined
	/** Units of the pattern that agree. */
	agreed: number
	/** Where the text goes on. */
	at: number
	/** Behind the last unit of the text that agrees. */
	end: number
}

const none: readonly Span[] = []

export class Matcher {
	readonly #tree = new Tree()
	#window = new Window(0)
	#size = 0
	/** Removed, but still in the window. */
	#gone = 0
	/** What `#follow` found: -1 and nobody where no pattern agrees far enough. */
	#reached = -1
	#owner = ''
	/** Set by `#follow` where the text ended before a pattern did. */
	#ranOut = false
	#patience = 0
	/** Still to be followed. */
	readonly #ways: Way[] = []

	/** `pattern` has at least `SHORTEST` units. */
	add(pattern: string, owner: string): void {
		const folded = foldAll(pattern)
		this.#tree.add(folded, owner)
		if (++this.#size > this.#window.capacity) this.#look()
		else this.#window.add(folded)
	}

	/** Undoes one `add` of the same. */
	remove(pattern: string, owner: string): void {
		if (!this.#tree.remove(foldAll(pattern), owner)) return
		this.#size--
		if (++this.#gone > Math.max(FORGOTTEN, this.#size)) this.#look()
	}

	/** `except`: owners whose patterns are not looked for. */
	find(text: string, except?: ReadonlySet<string>): Found {
		let spans: Span[] | undefined
		let open = text.length
		this.#patience = PATIENCE * text.length
		for (let start = this.#window.next(text, 0); start >= 0; start = this.#window.next(text, start + 1)) {
			this.#follow(text, start, except)
			const tired = this.#patience < 0
			if (this.#ranOut || tired) open = Math.min(open, start)
			if (this.#reached < 0) continue
			join((spans ??= []), { start, end: tired ? text.length : this.#reached, owner: this.#owner })
			if (tired) break
		}
		return { spans: spans ?? none, open }
	}

	/** Where, in the last few units, which are too few for the window, a pattern may begin; the text's length where none does. */
	openAtEnd(text: string, except?: ReadonlySet<string>): number {
		for (let start = Math.max(0, text.length - SHORTEST + 1); start < text.length; start++) {
			this.#follow(text, start, except)
			if (this.#ranOut) return start
		}
		return text.length
	}

	/** Makes a window for the patterns that there are. */
	#look(): void {
		this.#window = new Window(this.#size * 2)
		this.#gone = 0
		for (const beginning of this.#tree.beginnings(LONG)) this.#window.add(beginning)
	}

	/** Finds the pattern with which the text agrees farthest from `start` on. */
	#follow(text: string, start: number, except: ReadonlySet<string> | undefined): void {
		this.#reached = -1
		this.#ranOut = false
		this.#ways.push({ node: this.#tree.root, within: 0, taken: undefined, agreed: 0, at: start, end: start })
		for (let way = this.#ways.pop(); way; way = this.#ways.pop()) {
			do goAlong(text, way)
			while (this.#descend(text, way, except) || this.#pass(text, way, except))
			this.#patience -= Math.max(0, way.agreed - ENOUGH)
		}
	}

	/** From a node's end into the child with which the text goes on; false where there is none. */
	#descend(text: string, way: Way, except: ReadonlySet<string> | undefined): boolean {
		const { node } = way
		if (way.within < node.label.length) return false
		this.#take(way.end, ownerAt(node, except))
		const child = childFor(text, way, except)
		if (!child) return false
		if (mayGoOnOtherwise(text, way)) this.#ways.push({ ...way, taken: child })
		way.node = child
		way.within = 0
		way.taken = undefined
		return true
	}

	/** Where the text and the patterns part. False where the way ends there. */
	#pass(text: string, way: Way, except: ReadonlySet<string> | undefined): boolean {
		const { at, agreed, end } = way
		const ranOut = at >= text.length
		const isCut = agreed >= ENOUGH_OF_CUT && text.charCodeAt(at) === ELLIPSIS
		if (!ranOut && !isCut) {
			// What follows a filler is none, or a text of nothing else would be read anew at every place.
			const filler = agreed < SHORTEST || at > end ? 0 : fillerAt(text, at)
			way.at += filler
			if (filler > 0) return true
		}
		if (ranOut || isCut || agreed >= ENOUGH) {
			const owner = ownerBeyond(way, except)
			if (ranOut && owner !== undefined) this.#ranOut = true
			if (isCut || agreed >= ENOUGH) this.#take(end, owner)
		}
		return false
	}

	#take(end: number, owner: string | undefined): void {
		if (owner === undefined || end <= this.#reached) return
		this.#reached = end
		this.#owner = owner
	}
}

/** On to where the text or the node's label goes on otherwise. */
function goAlong(text: string, way: Way): void {
	const { node, at } = way
	const { label } = node
	let { within } = way
	const ahead = at - within
	const limit = Math.min(label.length, text.length - ahead)
	// Reading beyond the end of a string would make all of this slow.
	while (within < limit && fold(text.charCodeAt(ahead + within)) === label.charCodeAt(within)) within++
	if (within === way.within) return
	way.agreed += within - way.within
	way.within = within
	way.at = way.end = ahead + within
}

/** With which the text goes on. */
function childFor(text: string, { node, taken, at, agreed }: Way, except?: ReadonlySet<string>): Node | undefined {
	const child = at < text.length ? node.children?.get(fold(text.charCodeAt(at))) : undefined
	if (child === undefined || child === taken) return undefined
	// From there on only those are followed that matter: they take patience.
	if (agreed + child.label.length > ENOUGH && ownerUnder(child, except) === undefined) return undefined
	return child
}

/** Of a pattern that goes on behind the place at which the way is. */
function ownerBeyond({ node, within, taken }: Way, except: ReadonlySet<string> | undefined): string | undefined {
	if (within < node.label.length) return ownerUnder(node, except)
	for (const child of node.children?.values() ?? []) {
		const owner = child === taken ? undefined : ownerUnder(child, except)
		if (owner !== undefined) return owner
	}
	return undefined
}

/** Whether patterns that do not agree with the next unit may count, or go on behind it, as those that do agree may not. */
function mayGoOnOtherwise(text: string, { node, at, agreed }: Way): boolean {
	if (agreed < SHORTEST || (node.children?.size ?? 0) < 2) return false
	return text.charCodeAt(at) === ELLIPSIS || fillerAt(text, at) > 0
}

function join(spans: Span[], span: Span): void {
	const last = spans.at(-1)
	if (!last || span.start >= last.end) spans.push(span)
	else if (span.end > last.end) Object.assign(last, { end: span.end, owner: span.owner })
}

/** Lower case, of ASCII letters only: others may change their length. */
function fold(unit: number): number {
	return unit >= 0x41 && unit <= 0x5a ? unit | 0x20 : unit
}

function foldAll(text: string): string {
	return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}
