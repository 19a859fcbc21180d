import type { Style } from './contract.ts'
import { MARKS_AT, plain, widthOf } from './plain.ts'

/** Space between columns. */
const GAP = '  '
/** Columns; a longer cell is cut. */
const CELL_LIMIT = 200
const NAME_LIMIT = 64

/** The terminal codes of the colour marks, by their offset from MARKS_AT. */
const codes = ['\x1b[0m', '\x1b[1m', '\x1b[2m', '\x1b[32m', '\x1b[33m', '\x1b[31m', '\x1b[3m', '\x1b[9m', '\x1b[36m']
const styles = { bold: 1, dim: 2, italic: 6, struck: 7, code: 8 } as const
const marks = new RegExp(`[\\u{${MARKS_AT.toString(16)}}-\\u{${(MARKS_AT + codes.length - 1).toString(16)}}]`, 'gu')

/**
 * Colours are marks until they are written, so that the whole output can be escaped: even without `plain`, text from outside
 * never reaches a terminal unescaped. `columns`: the width of the terminal; undefined if the output is not one.
 */
export function styleFor({ columns }: { columns: number | undefined }): Style {
	const within = (n: number) => (text: string) => `${mark(n)}${text}${mark(0)}`
	const style: Style = {
		bold: within(1),
		dim: within(2),
		good: within(3),
		warn: within(4),
		bad: within(5),
		plain,
		table(headings, rows, empty = '(none)') {
			if (rows.length === 0) return style.dim(empty)
			const cells = rows.map((row) => headings.map((_, n) => cell(row[n])))
			const widths = headings.map((heading, n) =>
				Math.max(widthOf(heading), ...cells.map((row) => widthOf(row[n] ?? ''))),
			)
			const before = widths.slice(0, -1).reduce((sum, width) => sum + width + GAP.length, 0)
			const room = columns === undefined ? Infinity : Math.max(20, columns - before)
			const line = (row: string[]): string =>
				row
					.map((text, n) => (n === row.length - 1 ? cut(text, room) : padded(text, widths[n] ?? 0)))
					.join(GAP)
					.trimEnd()
			return [style.dim(line(headings.map((heading) => heading.toUpperCase()))), ...cells.map(line)].join('\n')
		},
		fields(all) {
			// Names may be keys of untrusted data. Without this, line breaks in them would look like further fields.
			const pairs = all.map(([name, value]) => [cut(plain(name), NAME_LIMIT), value] as const)
			const width = Math.max(0, ...pairs.map(([name]) => widthOf(name))) + 1
			const indent = `\n${' '.repeat(width + 1)}`
			return pairs
				.map(([name, value]) => `${style.dim(`${name}:`)}${' '.repeat(width - widthOf(name))}${shown(value, indent)}`)
				.join('\n')
		},
	}
	return style
}

export type StyleName = keyof typeof styles

/** Applies several styles at once. `text` must not contain marks. */
export function styled(text: string, names: readonly StyleName[]): string {
	return text === '' || names.length === 0 ? text : names.map((name) => mark(styles[name])).join('') + text + mark(0)
}

/** Replaces marks by colours, or removes them. */
export function paint(text: string, colours: boolean): string {
	return text.replace(marks, (found) => (colours ? (codes[(found.codePointAt(0) ?? 0) - MARKS_AT] ?? '') : ''))
}

function mark(n: number): string {
	return String.fromCodePoint(MARKS_AT + n)
}

function cell(value: string | number | null | undefined): string {
	if (value === null || value === undefined || value === '') return '-'
	const text = String(value)
	return cut(text.replaceAll(/\r?\n/g, ' '), CELL_LIMIT)
}

/** A text that is cut loses its style: without its end mark, the style would apply to the following text. */
function cut(text: string, room: number): string {
	if (widthOf(text) <= room) return text
	let width = 0
	let kept = ''
	for (const character of paint(text, false)) {
		width += widthOf(character)
		if (width > room - 1) break
		kept += character
	}
	return `${kept}…`
}

function padded(text: string, width: number): string {
	return text + ' '.repeat(Math.max(0, width - widthOf(text)))
}

function shown(value: unknown, indent: string): string {
	if (value === null || value === undefined || value === '') return '-'
	const isList = Array.isArray(value) && value.every((item) => typeof item !== 'object')
	if (isList && value.length === 0) return '-'
	const text = isList ? value.join(', ') : typeof value === 'object' ? jsonOf(value) : String(value)
	return text.replaceAll(/\r?\n/g, indent)
}

/** On one line if it fits. */
function jsonOf(value: object): string {
	const short = JSON.stringify(value)
	return short.length <= 80 ? short : JSON.stringify(value, null, 2)
}
