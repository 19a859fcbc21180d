/** Shows characters that are invisible, or change the direction of text: people must see what they approve. */
import { html } from 'lit'

/** Includes the Braille blank, which Unicode classifies as a symbol. */
const INVISIBLE = /((?![\n\t ])[\s\p{C}\p{Default_Ignorable_Code_Point}\u2800])/u
const ALL = new RegExp(INVISIBLE, 'gu')

/** Replaces each invisible character by its marked code point, such as U+200B. */
export function markInvisible(text: string): unknown[] {
	return text.split(INVISIBLE).map((part, at) => (at % 2 === 0 ? part : html`<mark>${codePointOf(part)}</mark>`))
}

/** JSON in which each invisible character is an escape, so that the value is the same. */
export function jsonWithEscapes(value: unknown): string {
	return JSON.stringify(value, null, 2).replaceAll(ALL, (character) =>
		Array.from({ length: character.length }, (_, at) => `\\u${hex(character.charCodeAt(at))}`).join(''),
	)
}

function codePointOf(character: string): string {
	return `U+${hex(character.codePointAt(0) ?? 0).toUpperCase()}`
}

function hex(code: number): string {
	return code.toString(16).padStart(4, '0')
}
