const WIDTH = 120
const TAB_WIDTH = 4

/** JSON for a file: values that fit into a line of 120 characters are on one line, others are indented with tabs. */
export function jsonText(value: unknown): string {
	return `${linesOf(value, 0, 0)}\n`
}

/** `column`: the number of characters before the value on its line. */
function linesOf(value: unknown, depth: number, column: number): string {
	const line = lineOf(value)
	if (typeof value !== 'object' || value === null || column + line.length <= WIDTH) return line
	const [open, close] = Array.isArray(value) ? '[]' : '{}'
	const indent = '\t'.repeat(depth + 1)
	const parts = Object.entries(value).map(([name, part]) => {
		const key = Array.isArray(value) ? '' : `${JSON.stringify(name)}: `
		return `${indent}${key}${linesOf(part, depth + 1, (depth + 1) * TAB_WIDTH + key.length)}`
	})
	return `${open}\n${parts.join(',\n')}\n${'\t'.repeat(depth)}${close}`
}

function lineOf(value: unknown): string {
	if (Array.isArray(value)) return `[${value.map(lineOf).join(', ')}]`
	if (typeof value !== 'object' || value === null) return JSON.stringify(value)
	const parts = Object.entries(value).map(([name, part]) => `${JSON.stringify(name)}: ${lineOf(part)}`)
	return parts.length > 0 ? `{ ${parts.join(', ')} }` : '{}'
}
