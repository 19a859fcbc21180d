/** Redaction with the secrets of particular writers: of texts, data and streamed texts. */
import { addSpan } from './secret-set.ts'
import type { SecretSet, Span } from './secret-set.ts'
import { mapData } from './walk.ts'

/** Where a secret was about to be shown. */
export type Sink = 'event' | 'record' | 'log' | 'model' | 'stream'

export interface Redaction {
	id: string
	name: string
	sink: Sink
	count: number
}

/** `found`: by the id of the secret; absent until one is found. */
interface Counts {
	found?: Map<string, Omit<Redaction, 'sink'>>
}

/**
 * Holds back the end of the text after the last character that is not printable ASCII (such as a space), at most 4,096 code
 * units. If a secret itself is not printable ASCII, such as one of several words, the last 4,096 code units are always held back.
 * If the longest form of a secret has more, both bounds grow to the next power of two. Apart from that, the content of secrets has
 * no influence. A mark in the text is not split, since readers who may not see names are shown another mark.
 */
export interface TextStream {
	/** The text that can be shown so far; may be empty. */
	push(piece: string): string
	/** The rest. Afterwards the stream can be used for another text. */
	end(): string
}

/** A class, since a view is made for every commit, and most of its methods are never called. */
export class View {
	readonly #setsNow: () => readonly SecretSet[]
	readonly #report: (found: Redaction) => void

	constructor(setsNow: () => readonly SecretSet[], report: (found: Redaction) => void) {
		this.#setsNow = setsNow
		this.#report = report
	}

	/** False while there is no secret to redact: then no text needs to be searched. */
	get active(): boolean {
		return this.#setsNow().length > 0
	}

	/** `except`: ids of secrets that may be shown. */
	text(text: string, sink: Sink, except?: ReadonlySet<string>): string {
		const among = this.#setsNow()
		if (among.length === 0) return text
		return this.#reporting(sink, (counts) => replaced(text, spansIn(among, text, except), counts))
	}

	/**
	 * The redacted beginning of a text, for callers that shorten it: redacting a text after the cut would miss a secret at the cut.
	 * `limit`: code units of the unredacted text, 0 or more. `dropped`: the number of code units that are omitted.
	 */
	cut(text: string, limit: number, sink: Sink, except?: ReadonlySet<string>): { text: string; dropped: number } {
		const among = this.#setsNow()
		const needed = Math.max(0, ...among.map((set) => set.horizon))
		const spans = spansIn(among, text.slice(0, limit + needed), except).filter(({ start }) => start < limit)
		const end = Math.min(text.length, Math.max(limit, spans.at(-1)?.end ?? 0))
		const shown = this.#reporting(sink, (counts) => replaced(text.slice(0, end), spans, counts))
		return { text: shown, dropped: text.length - end }
	}

	/**
	 * Plain data with every string redacted, keys too; see `mapData`. A number whose digits are a complete secret becomes a string.
	 * Returns the same object if nothing was found.
	 */
	data<T>(value: T, sink: Sink, except?: ReadonlySet<string>): T {
		const among = this.#setsNow()
		if (among.length === 0) return value
		return this.#reporting(sink, (counts) =>
			mapData(value, {
				text: (text) => replaced(text, spansIn(among, text, except), counts),
				number(value) {
					const text = String(Math.abs(value))
					const spans = spansIn(among, text, except)
					// A secret within a longer number, such as a time, is a coincidence.
					const isWhole = spans[0]?.start === 0 && spans[0].end === text.length
					return isWhole ? replaced(text, spans, counts) : value
				},
			}),
		)
	}

	/** For text that arrives in pieces. */
	stream(sink: Sink): TextStream {
		let held = ''
		const show = (text: string, safe: number, spans: readonly Span[]): string => {
			held = text.slice(safe)
			const before = spans.filter(({ start }) => start < safe)
			return this.#reporting(sink, (counts) => replaced(text.slice(0, safe), before, counts))
		}
		return {
			push: (piece) => {
				const among = this.#setsNow()
				if (among.length === 0 && held === '') return piece
				const text = held + piece
				const spans = spansIn(among, text)
				const wanted = among.length === 0 ? text.length : beforeMark(text, safeLength(text, among))
				const across = spans.find(({ start, end }) => start < wanted && wanted < end)
				return show(text, across?.start ?? wanted, spans)
			},
			end: () => show(held, held.length, spansIn(this.#setsNow(), held)),
		}
	}

	/** The same view, which reports what it redacts only to `listener`. */
	reportingTo(listener: (found: Redaction) => void): View {
		return new View(this.#setsNow, listener)
	}

	/** Counts the replacements of `work`, then reports them. */
	#reporting<T>(sink: Sink, work: (counts: Counts) => T): T {
		const counts: Counts = {}
		const result = work(counts)
		if (counts.found) for (const { id, name, count } of counts.found.values()) this.#report({ id, name, sink, count })
		return result
	}
}

function spansIn(sets: readonly SecretSet[], text: string, except?: ReadonlySet<string>): readonly Span[] {
	const only = sets[0]
	if (!only) return []
	const found = only.find(text, except)
	if (sets.length === 1) return found
	const all = [...found, ...sets.slice(1).flatMap((set) => set.find(text, except))]
	if (all.length === found.length) return found
	const merged: Span[] = []
	for (const span of all.toSorted((a, b) => a.end - b.end || a.start - b.start)) addSpan(merged, span)
	return merged
}

function replaced(text: string, spans: readonly Span[], counts: Counts): string {
	if (spans.length === 0) return text
	let shown = ''
	let at = 0
	for (const { start, end, secret, mark } of spans) {
		const { id, name } = secret
		shown += text.slice(at, start) + mark
		counts.found ??= new Map()
		counts.found.set(id, { id, name, count: (counts.found.get(id)?.count ?? 0) + 1 })
		at = end
	}
	return shown + text.slice(at)
}

/** The length of the beginning that cannot be part of a secret that ends in a later piece. */
function safeLength(text: string, sets: readonly SecretSet[]): number {
	let safe = Math.max(0, text.length + 1 - Math.max(...sets.map((set) => set.horizon)))
	if (!sets.some((set) => set.hasGaps)) {
		let end = text.length
		while (end > safe && isPrintableAscii(text.charCodeAt(end - 1))) end--
		safe = end
	}
	// Both halves of a surrogate pair stay together.
	return (text.charCodeAt(safe - 1) & 0xfc00) === 0xd800 ? safe - 1 : safe
}

/** The beginning of an incomplete mark. */
const OPEN_MARK = /\[(?:r(?:e(?:d(?:a(?:c(?:t(?:e(?:d(?::[\w .:/@+-]{0,128})?)?)?)?)?)?)?)?)?$/
const MARK_LENGTH = 140

/** `length`, or less if a mark would be cut there. */
function beforeMark(text: string, length: number): number {
	const open = OPEN_MARK.exec(text.slice(Math.max(0, length - MARK_LENGTH), length))
	return open ? length - open[0].length : length
}

function isPrintableAscii(unit: number): boolean {
	return unit > 0x20 && unit < 0x7f
}
