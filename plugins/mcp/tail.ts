export type Tail = ReturnType<typeof openTail>

/** The end of a text that arrives in chunks. */
export function openTail(limit: number) {
	let kept = ''
	let cut = false
	return {
		push(piece: string): void {
			kept += piece
			if (kept.length <= 4 * limit) return // cut rarely: cutting copies
			kept = kept.slice(-2 * limit)
			cut = true
		},
		/**
		 * At most `limit` characters, from the beginning of a line. `scrub` gets the text before it is cut, and at
		 * least a limit's length before the cut.
		 */
		text(scrub: (text: string) => string): string {
			const scrubbed = scrub(kept)
			if (scrubbed.length <= limit && !cut) return scrubbed
			const end = scrubbed.slice(-limit)
			return end.slice(end.indexOf('\n') + 1)
		},
	}
}
