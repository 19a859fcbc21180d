export type Tail = ReturnType<typeof openTail>

/** Keeps the end of a text that arrives in chunks. */
export function openTail(limit: number) {
	let kept = ''
	let cut = false
	return {
		push(piece: string): void {
			kept += piece
			if (kept.length <= 4 * limit) return // cut rarely, since a cut copies the text
			kept = kept.slice(-2 * limit)
			cut = true
		},
		/**
		 * At most `limit` characters, from the beginning of a line. `scrub` gets the complete text or the end of it, at least `2 * limit`
		 * characters, so that it sees values that the cut would split.
		 */
		text(scrub: (text: string) => string): string {
			const scrubbed = scrub(kept)
			if (scrubbed.length <= limit && !cut) return scrubbed
			const end = scrubbed.slice(-limit)
			return end.slice(end.indexOf('\n') + 1)
		},
	}
}
