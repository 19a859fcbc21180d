/** Longer ones are read as text; a file's deepest indentation is far from it. */
const LIMIT = 256

/**
 * How many units at `at` are no part of any text, 256 at most: a line break, also one that JSON has escaped, with the
 * indentation behind it, or characters that do not show.
 */
export function fillerAt(text: string, at: number): number {
	const limit = at + LIMIT
	let end = at
	while (end < limit) {
		const next = afterBreak(text, end, limit)
		if (next === end) break
		end = next
	}
	if (end > at) while (end < limit && isBlank(text.charCodeAt(end))) end++
	while (end < limit && isUnseen(text.charCodeAt(end))) end++
	return end - at
}

/** False only for a unit with which no filler begins, nor the end of the text (NaN). */
export function mayBeFiller(unit: number): boolean {
	return !(unit < 0x7f) || unit === 0x0a || unit === 0x0d || unit === 0x5c
}

function afterBreak(text: string, at: number, limit: number): number {
	const unit = text.charCodeAt(at)
	if (unit === 0x0a || unit === 0x0d) return at + 1
	if (unit !== 0x5c) return at
	let end = at
	while (end < limit && text.charCodeAt(end) === 0x5c) end++
	const escaped = text.charCodeAt(end)
	if (escaped === 0x6e || escaped === 0x72) return end + 1
	// The text may end in the middle of it.
	return Number.isNaN(escaped) ? end : at
}

function isBlank(unit: number): boolean {
	return unit === 0x20 || unit === 0x09
}

function isUnseen(unit: number): boolean {
	return (unit >= 0x200b && unit <= 0x200d) || unit === 0x2060 || unit === 0xfeff || unit === 0xad
}
