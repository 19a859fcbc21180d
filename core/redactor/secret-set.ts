/** The secrets of one owner: their values in every encoding, and the marks that replace them. */
import { SHORTEST, formsOf } from './forms.ts'
import { isOrdinary } from './ordinary.ts'
import { PatternSearch } from './pattern-search.ts'
import type { Found } from './pattern-search.ts'

export interface Secret {
	/** Stable, unique. */
	id: string
	/** Shown in its place, as `[redacted:NAME]`, to readers who may list secrets. */
	name: string
	/** See `isRedactable`. Surrounding white space is ignored. */
	value: string
}

/** A range of a text, from `start` up to and not including `end`. */
export interface Span {
	start: number
	end: number
	/** Of several that overlap, the one that ends last. */
	secret: Pick<Secret, 'id' | 'name'>
	/** What replaces it. */
	mark: string
}

/** Earlier values under one id that are still redacted. Bounded, since a secret may be rotated every hour. */
const VALUES = 8
/** Limit of the secrets of one owner, deleted ones included. Above it, the one that was read longest ago is no longer redacted. */
const SECRETS = 256
export const NAMELESS = '[redacted]'
const none: readonly Span[] = []
/** The result for the last text is cached if its length is in this range, in code units. Shorter texts are searched quickly. */
const CACHED_FROM = 256
const CACHED_TO = 64 * 1024
const SAFE_NAME = /^[\w .:/@+-]{1,128}$/
const PRINTABLE_ASCII = /^[\x21-\x7e]+$/
/** The most code units that a stream holds back, unless the longest form of a secret has more. */
const HORIZON = 4096

/** False for a value with fewer than 8 characters, and for one that is part of records and events themselves. */
export function isRedactable(value: string): boolean {
	const wanted = value.trim()
	return wanted.length >= SHORTEST && !isOrdinary(wanted)
}

interface KnownSecret {
	id: string
	name: string
	/** Oldest first. */
	values: string[]
}

interface Compiled {
	patterns: PatternSearch
	/** For each pattern, the secrets that have it as a form. */
	owners: KnownSecret[][]
	/** Adds an occurrence to the spans. Created once, so that searching a text without secrets, as nearly all are, allocates nothing. */
	add: Found<Span[]>
	horizon: number
	hasGaps: boolean
}

export class SecretSet {
	/** By id; the one that was read last is at the end. */
	readonly #secrets = new Map<string, KnownSecret>()
	readonly #compiling: (set: SecretSet) => void
	#compiled: Compiled | undefined
	/** The last text and its result: the same text is often in an event and in a record. */
	#last: { text: string; spans: readonly Span[] } | undefined

	/** `compiling` is called whenever the set builds a table, which `forget` drops. */
	constructor(compiling: (set: SecretSet) => void) {
		this.#compiling = compiling
	}

	get isEmpty(): boolean {
		return this.#secrets.size === 0
	}

	/** Size of its table in bytes. */
	get bytes(): number {
		return this.#compiled?.patterns.bytes ?? 0
	}

	/**
	 * The upper bound of the length of all forms: a power of two, and at least 4,096, so that it does not reveal their length.
	 */
	get horizon(): number {
		return this.#ready().horizon
	}

	/** Whether a form of a secret contains characters other than printable ASCII, such as a space. */
	get hasGaps(): boolean {
		return this.#ready().hasGaps
	}

	/** Another value under the same id is redacted in addition to the earlier ones. False if it is not redactable. */
	add({ id, name, value }: Secret): boolean {
		if (!isRedactable(value)) return false
		const wanted = value.trim()
		const before = this.#secrets.get(id)
		const isKnownSecret = before?.name === name && before.values.at(-1) === wanted
		const earlier = before?.values.filter((known) => known !== wanted) ?? []
		this.#secrets.delete(id)
		this.#secrets.set(id, isKnownSecret ? before : { id, name, values: [...earlier, wanted].slice(-VALUES) })
		if (isKnownSecret) return true
		const [oldest = id] = this.#secrets.keys()
		if (this.#secrets.size > SECRETS) this.#secrets.delete(oldest)
		this.forget()
		return true
	}

	/**
	 * All complete secrets in the text, in order. Overlapping ones are one span. `except`: ids of secrets whose values may be
	 * shown, even if another secret has the same value.
	 */
	find(text: string, except?: ReadonlySet<string>): readonly Span[] {
		if (text.length < SHORTEST) return none
		const { patterns, add } = this.#ready()
		const isCached = except === undefined && text.length >= CACHED_FROM && text.length <= CACHED_TO
		if (isCached && this.#last?.text === text) return this.#last.spans
		const spans = patterns.search(text, except ? addUnlessIn(except, this.#ready()) : add) ?? none
		if (isCached) this.#last = { text, spans }
		return spans
	}

	/** Drops the table; the next search builds it again. */
	forget(): void {
		this.#compiled = undefined
		this.#last = undefined
	}

	#ready(): Compiled {
		if (this.#compiled) return this.#compiled
		const byForm = new Map<string, KnownSecret[]>()
		for (const secret of this.#secrets.values())
			for (const form of new Set(secret.values.flatMap(formsOf)))
				byForm.set(form, [...(byForm.get(form) ?? []), secret])
		const forms = [...byForm.keys()]
		const patterns = new PatternSearch(forms)
		const owners = [...byForm.values()]
		const marks = new Map(this.#secrets.values().map((secret) => [secret, markOf(secret.name, patterns)]))
		const longest = forms.reduce((most, form) => Math.max(most, form.length), 0)
		this.#compiled = {
			patterns,
			owners,
			add(spans = [], pattern, start, end) {
				const secret = owners[pattern]?.[0] as KnownSecret
				addSpan(spans, { start, end, secret, mark: marks.get(secret) ?? NAMELESS })
				return spans
			},
			horizon: Math.max(HORIZON, 2 ** Math.ceil(Math.log2(longest))),
			hasGaps: forms.some((form) => !PRINTABLE_ASCII.test(form)),
		}
		this.#compiling(this)
		return this.#compiled
	}
}

/** As `add`, without secrets that may be shown. */
function addUnlessIn(shown: ReadonlySet<string>, { owners, add }: Compiled): Found<Span[]> {
	return (spans, pattern, start, end) =>
		owners[pattern]?.some(({ id }) => shown.has(id)) ? spans : add(spans, pattern, start, end)
}

/** `spans` are in the order of their ends, and do not overlap. */
export function addSpan(spans: Span[], span: Span): void {
	let { start } = span
	for (let last = spans.at(-1); last && last.end > start; last = spans.at(-1)) {
		start = Math.min(start, last.start)
		spans.pop()
	}
	spans.push({ ...span, start })
}

/** A mark must not contain a secret, and must not break the surrounding JSON. */
function markOf(name: string, patterns: PatternSearch): string {
	if (!SAFE_NAME.test(name)) return NAMELESS
	const mark = `[redacted:${name}]`
	return patterns.search(mark, () => NAMELESS) ?? mark
}
