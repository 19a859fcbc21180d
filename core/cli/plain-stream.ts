/** An answer as plain text, if Markdown is not rendered: in a pipe, or with NO_COLOR. */

/** Turns the pieces of an answer into what can be shown of them. */
export interface AnswerText {
	/** What can be shown now; the rest waits for the next piece. */
	write(piece: string): string
	/** What was held back; the next piece begins a new text. */
	flush(): string
}

/**
 * What must wait for the next piece: a character that a joiner may follow, with all that is joined to it already, half a
 * surrogate pair, half a line end.
 */
const unfinished =
	/(?:(?:[^\0-\x7f](?:\ufe0e|\ufe0f)*(?:\u200c|\u200d))*[^\0-\x7f](?:\ufe0e|\ufe0f|\u200c|\u200d)*|\r)$/u
/** No more than this is held back, whatever a model joins. */
const UNFINISHED_LIMIT = 64

export function plainStream(): AnswerText {
	let held = ''
	return {
		write(piece) {
			const text = held + piece
			held = unfinished.exec(text.slice(-UNFINISHED_LIMIT))?.[0] ?? ''
			return text.slice(0, text.length - held.length)
		},
		flush() {
			const text = held
			held = ''
			return text
		},
	}
}
