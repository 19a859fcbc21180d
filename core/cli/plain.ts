/** Makes text from outside safe to show on a terminal. */
import { columnsOf } from '../util/columns.ts'
import { jsonEscape } from '../util/json-escape.ts'

/** The first of the characters that represent colours until output.ts writes them. Other text must not contain them. */
export const MARKS_AT = 0x10ff00
const MARKS = 16

const mark = `\\u{${MARKS_AT.toString(16)}}-\\u{${(MARKS_AT + MARKS - 1).toString(16)}}`
/**
 * Characters that move the cursor, change colours, reverse the text direction or are invisible. A joiner between two letters of a
 * script that needs it, or between emoji, is part of the text.
 */
const joiner = String.raw`(?<=[\p{L}\p{M}\p{Extended_Pictographic}\p{EMod}])[\u200c\u200d](?=[\p{L}\p{M}\p{Extended_Pictographic}])`
const variation = String.raw`(?<=[\p{Extended_Pictographic}0-9#*])[\ufe0e\ufe0f]`
const hidden = String.raw`(?!\t|${joiner}|${variation})[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]`
const ofOutside = new RegExp(`${hidden}|[${mark}]`, 'gu')
const ofAll = new RegExp(hidden, 'gu')
const marks = new RegExp(`[${mark}]`, 'gu')

/** Escapes each such character as `\x1b` or `\u{202e}`; line breaks too, unless `lines`. */
export function plain(text: string, { lines = false }: { lines?: boolean } = {}): string {
	return escape(text, ofOutside, lines)
}

/** The same for a whole output, whose colour marks are kept. */
export function safe(text: string): string {
	return escape(text, ofAll, true)
}

/** JSON in which such characters are escaped as `\\u202e`; a parser reads the same value. `space` as for JSON.stringify. */
export function safeJson(value: unknown, space?: number): string {
	const text = JSON.stringify(value ?? null, null, space)
	return text.replace(ofAll, (character) => (character === '\n' ? character : jsonEscape(character)))
}

function escape(text: string, what: RegExp, lines: boolean): string {
	const read = lines ? text.replaceAll('\r\n', '\n') : text
	return read.replace(what, (character) => (lines && character === '\n' ? character : nameOf(character)))
}

function nameOf(character: string): string {
	if (character === '\n') return '\\n'
	if (character === '\r') return '\\r'
	const code = character.codePointAt(0) ?? 0
	return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`
}

/** Columns that a text occupies on a terminal. */
export function widthOf(text: string): number {
	return columnsOf(text.replace(marks, ''))
}
