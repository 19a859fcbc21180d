/** Streams an answer as plain text, for when Markdown is not rendered: in a pipe, or with NO_COLOR. */

/** Converts the pieces of an answer to text that can be shown. */
export interface AnswerText {
	/** Returns what can be shown now and holds back the rest until the next piece. */
	write(piece: string): string
	/** Returns what was held back. The next piece begins a new text. */
	flush(): string
}

/**
 * What must wait for the next piece: a character that a joiner may follow, with everything that is already joined to it, half a
 * surrogate pair, half a line end.
 */
const unfinished =
	/(?:(?:[^\0-\x7f](?:\ufe0e|\ufe0f)*(?:\u200c|\u200d))*[^\0-\x7f](?:\ufe0e|\ufe0f|\u200c|\u200d)*|\r)$/u
/** The most characters that are held back, since a model may join any number. */
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
