/** Quotes a text as one word of a shell. */
export function quoted(text: string): string {
	return /^[\w.:/@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
