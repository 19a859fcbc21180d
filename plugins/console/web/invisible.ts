/** Characters of texts from outside that nobody would see, or that turn text around: people approve what they see. */
import { html } from 'lit'

/** The blank of Braille, too, which Unicode counts as a symbol. */
const UNSEEN = /((?![\n\t ])[\s\p{C}\p{Default_Ignorable_Code_Point}\u2800])/u
const ALL = new RegExp(UNSEEN, 'gu')

/** The text with each of them marked by its number. */
export function shown(text: string): unknown[] {
	return text.split(UNSEEN).map((part, at) => (at % 2 === 0 ? part : html`<mark>${numberOf(part)}</mark>`))
}

/** JSON with each of them as an escape, which reads as the same. */
export function shownJson(value: unknown): string {
	return JSON.stringify(value, null, 2).replaceAll(ALL, (character) =>
		Array.from({ length: character.length }, (_, at) => `\\u${hex(character.charCodeAt(at))}`).join(''),
	)
}

function numberOf(character: string): string {
	return `U+${hex(character.codePointAt(0) ?? 0).toUpperCase()}`
}

function hex(code: number): string {
	return code.toString(16).padStart(4, '0')
}
