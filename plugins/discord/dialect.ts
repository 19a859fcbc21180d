import { columnsOf } from '../../core/util/columns.ts'

/**
 * Converts Markdown as models write it to Discord's dialect, which has no tables (they become aligned text in a code block),
 * only three levels of headings, no images, `__` for underlined text and `||` for hidden text. Code is not changed. If the
 * result would be longer than `max_length`, the text stays as written.
 */
export function dialectOf(text: string, max_length: number): string {
	const lines = text.split('\n')
	const out: string[] = []
	let fence: string | undefined
	for (let at = 0; at < lines.length; at++) {
		const line = lines[at] ?? ''
		const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
		if (fence !== undefined) {
			if (mark?.startsWith(fence) && line.trim() === mark) fence = undefined
			out.push(line)
		} else if (mark !== undefined) {
			fence = mark
			out.push(line)
		} else if (isTable(line, lines[at + 1])) {
			const rows = [cellsOf(line)]
			for (at += 2; lines[at]?.includes('|'); at++) rows.push(cellsOf(lines[at] ?? ''))
			at--
			out.push('```', ...aligned(rows), '```')
		} else {
			out.push(lineOf(line))
		}
	}
	const converted = out.join('\n')
	return converted.length <= max_length ? converted : text
}

/** Maximum width of a column: wider cells do not widen the others. */
const WIDEST = 40

function isTable(head: string, rule = ''): boolean {
	if (!head.includes('|') || !rule.includes('-')) return false
	const marks = cellsOf(rule)
	return marks.length === cellsOf(head).length && marks.every((cell) => /^:?-+:?$/.test(cell))
}

function cellsOf(row: string): string[] {
	const cells = row
		.trim()
		.replace(/^\|/, '')
		.split(/(?<!\\)\|/)
	if (cells.at(-1)?.trim() === '' && cells.length > 1) cells.pop()
	return cells.map((cell) => cell.trim().replaceAll('\\|', '|').replaceAll('```', "'''"))
}

function aligned([head = [], ...rows]: string[][]): string[] {
	const widths = head.map((cell, at) =>
		Math.min(WIDEST, Math.max(columnsOf(cell), ...rows.map((row) => columnsOf(row[at] ?? '')))),
	)
	const lineUp = (row: string[]): string =>
		row
			.map((cell, at) => cell + ' '.repeat(Math.max(0, (widths[at] ?? 0) - columnsOf(cell))))
			.join('  ')
			.trimEnd()
	return [lineUp(head), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.map(lineUp)]
}

function lineOf(line: string): string {
	const heading = /^ {0,3}#{4,6} +(.*)$/.exec(line)?.[1]
	if (heading !== undefined) return `**${plainOf(heading).replaceAll('**', '')}**`
	return plainOf(line)
}

/** The text between the code spans of one line. */
function plainOf(line: string): string {
	return line
		.split(/(`+[^`]*`+)/)
		.map((piece) => (piece.startsWith('`') ? piece : signsOf(piece)))
		.join('')
}

function signsOf(text: string): string {
	return text
		.replaceAll('![', '[')
		.replace(/(?<![\w_])__(?=\S)([^_]+)__(?![\w_])/g, '**$1**')
		.replaceAll('||', '\\|\\|')
}

/** Escapes markup. If the result would be too long, returns the text unchanged. */
export function literalOf(text: string, max_length: number): string {
	const converted = text.replaceAll(/[\\`*_~|]|^[ \t]*[#>-]/gm, (sign) => sign.replace(/\S/, '\\$&'))
	return converted.length <= max_length ? converted : text
}
