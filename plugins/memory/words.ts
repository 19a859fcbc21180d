/**
 * Converts text to search terms: lower case, without function words, endings and accents. Languages without spaces yield pairs
 * of characters instead of words.
 */
import { languageOf, languages } from './languages.ts'
import type { Language } from './languages.ts'

export interface Terms {
	/** In the order of the text, repetitions included. */
	terms: string[]
	language: Language
}

/** Longer words are really keys, addresses or base64 images; their beginning distinguishes them. */
const WORD_CHARACTERS = 48
const STEMS_KEPT = 20_000

const wordPattern = /[\p{L}\p{N}\p{M}]+/gu
const contraction = /(?:n't|'(?:s|re|ve|ll|d|m))(?![\p{L}\p{N}])/gu
const unspaced =
	/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー]/u
/** A single character of these may be a word. */
const alone = /[\p{Script=Han}\p{Script=Hangul}]/u
const ascii = /^[\x00-\x7f]*$/ // oxlint-disable-line no-control-regex -- the whole of ASCII is meant
const marks = /\p{M}+/gu
/** Letters without a Unicode decomposition, and how people type them on keyboards that lack them. */
const plainForms: Record<string, string> = { ı: 'i', ø: 'o', ł: 'l', đ: 'd', ß: 'ss', æ: 'ae', œ: 'oe' }
const special = new RegExp(`[${Object.keys(plainForms).join('')}]`, 'g')
const plainOf = (letter: string): string => plainForms[letter] ?? letter
const ordinal = /^(\d+)(?:st|nd|rd|th)$/
const leadingZeros = /^0+(?=\d)/

/** `fallback`: the language to assume if the text does not reveal it, such as a single name. */
export function termsOf(text: string, fallback: Language | undefined = languages[0]): Terms {
	const words = wordsOf(text)
	const language = languageOf(words, fallback) ?? (languages[0] as Language)
	const terms: string[] = []
	for (const word of words) if (!language.function_words.has(word)) terms.push(...spellings(word, language))
	return { terms, language }
}

/** As `termsOf`, but never empty: without terms it returns the function words, and without words the text itself. */
export function someTermsOf(text: string): string[] {
	const { terms, language } = termsOf(text)
	if (terms.length > 0) return terms
	const words = wordsOf(text)
	return words.length > 0 ? words.flatMap((word) => spellings(word, language)) : [text]
}

/**
 * The terms of a query: for each one, its distinct stems in the languages of the searched memories. Function words are kept
 * only if there is nothing else.
 */
export function queryOf(text: string, among: readonly Language[], fallback?: Language): string[][] {
	const words = [...new Set(wordsOf(text))]
	const language = languageOf(words, fallback)
	const significant = words.filter((word) => !language?.function_words.has(word))
	const forms = new Map<string, string[]>()
	for (const word of significant.length > 0 ? significant : words) {
		const all = among.map((one) => spellings(word, one))
		for (const [at, first] of (all[0] ?? []).entries()) {
			const found = [...new Set(all.map((one) => one[at] ?? first))]
			forms.set(found.join(' '), found)
		}
	}
	return [...forms.values()]
}

/** Lower-case words as written. */
export function wordsOf(text: string): string[] {
	let lower = text.toLowerCase()
	if (!ascii.test(lower)) lower = lower.normalize('NFKC').replaceAll(/[’ʼ＇]/g, "'")
	if (lower.includes("'")) lower = lower.replaceAll(contraction, '')
	return lower.match(wordPattern) ?? []
}

function spellings(word: string, language: Language): string[] {
	if (!ascii.test(word) && unspaced.test(word)) return pairsOf(word, language)
	return [cachedStem(word.slice(0, WORD_CHARACTERS), language)]
}

const caches = new Map<Language, Map<string, string>>()

/** Stemming takes longer than everything else, and the same words recur. */
function cachedStem(word: string, language: Language): string {
	let cache = caches.get(language)
	if (!cache) caches.set(language, (cache = new Map()))
	let form = cache.get(word)
	if (form === undefined) {
		form = stemOf(word, language)
		if (cache.size >= STEMS_KEPT) cache.clear()
		cache.set(word, form)
	}
	return form
}

function stemOf(word: string, language: Language): string {
	if (word.charCodeAt(0) <= 0x39) return word.replace(leadingZeros, '').replace(ordinal, '$1')
	const stem = language.stem(word)
	return ascii.test(stem)
		? stem
		: stem.normalize('NFD').replaceAll(marks, '').normalize('NFC').replaceAll(special, plainOf)
}

/** Every pair of neighbours in each stretch without spaces, and each Chinese or Korean character by itself. */
function pairsOf(word: string, language: Language): string[] {
	const terms: string[] = []
	let stretch: string[] = []
	let other = ''
	const flush = (): void => {
		if (other !== '') terms.push(cachedStem(other.slice(0, WORD_CHARACTERS), language))
		for (const [at, character] of stretch.entries()) {
			const next = stretch[at + 1]
			if (next !== undefined) terms.push(character + next)
			if (alone.test(character) || stretch.length === 1) terms.push(character)
		}
		other = ''
		stretch = []
	}
	for (const character of word) {
		const isUnspaced = unspaced.test(character)
		if (isUnspaced ? other !== '' : stretch.length > 0) flush()
		if (isUnspaced) stretch.push(character)
		else other += character
	}
	flush()
	return terms
}
