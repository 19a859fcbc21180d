/** A Markdown table; cells are escaped. */
export function table(headings: string[], rows: string[][]): string {
	const line = (cells: string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
	return [line(headings), `|${'---|'.repeat(headings.length)}`, ...rows.map(line)].join('\n')
}

export function code(text: string): string {
	return `\`${text}\``
}

/** Escapes plain text for Markdown. */
export function plain(text: string): string {
	return text.replaceAll(/[*<\\]/g, '\\$&')
}
