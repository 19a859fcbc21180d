/** The end of a text that comes in pieces. */
export interface Tail {
	push(piece: string): void
	/** At most the limit, in characters, and then from the beginning of a line. */
	text(): string
}

export function openTail(limit: number): Tail {
	let kept = ''
	let cut = false
	return {
		push(piece) {
			kept += piece
			if (kept.length <= 2 * limit) return // cut rarely: cutting copies
			kept = kept.slice(-limit)
			cut = true
		},
		text() {
			if (kept.length <= limit && !cut) return kept
			const end = kept.slice(-limit)
			return end.slice(end.indexOf('\n') + 1)
		},
	}
}
