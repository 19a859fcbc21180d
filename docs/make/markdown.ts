/** Rows under headings, as a Markdown table; nothing of a cell breaks it. */
export function table(headings: string[], rows: string[][]): string {
	const line = (cells: string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
	return [line(headings), `|${'---|'.repeat(headings.length)}`, ...rows.map(line)].join('\n')
}

export function code(text: string): string {
	return `\`${text}\``
}

/** Text that knows nothing of Markdown. */
export function plain(text: string): string {
	return text.replaceAll(/[*<\\]/g, '\\$&')
}
