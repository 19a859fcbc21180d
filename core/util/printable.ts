/** Controls, invisible and unassigned characters, and separators of lines and paragraphs. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u
const ALL = new RegExp(UNPRINTABLE, 'gu')

/** Whether a terminal or a page shows every character of the text, on one line. */
export function isPrintable(text: string): boolean {
	return !UNPRINTABLE.test(text)
}

/** The text with `?` for each character that is not printable. */
export function printable(text: string): string {
	return text.replaceAll(ALL, '?')
}
