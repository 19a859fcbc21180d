/** A part of a text that a model reads in several parts. */
export interface TextPart {
	text: string
	/** Characters of the whole text. */
	total: number
	/** Where to read on; null at the end. */
	next_offset: number | null
}

/** `limit` UTF-16 units from `offset` on, and one more if the part would otherwise split a character. */
export function partOf(whole: string, offset: number, limit: number): TextPart {
	const total = whole.length
	let end = Math.min(total, offset + limit)
	if (isInside(whole, end)) end++
	return { text: whole.slice(offset, end).toWellFormed(), total, next_offset: end < total ? end : null }
}

/** Whether the index is between the two halves of a surrogate pair. */
export function isInside(text: string, at: number): boolean {
	return (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(at) & 0xfc00) === 0xdc00
}
