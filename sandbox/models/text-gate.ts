import { CALL_OPENERS } from './text-calls.ts'
import { heldBack } from './think-tags.ts'

/** The beginning of a text that is a call in JSON. Below this length it cannot be decided. */
const BARE = /^(```\w*\s*)?\[?\s*\{\s*"(name|function|type|id|parameters|arguments)"/
const BARE_LENGTH = 40
/** That beginning, or any other text, must be within this many characters. */
const BEGINNING = 4 * 1024

/** Holds back text from the possible beginning of a tool call in text form, so that calls are not streamed as text. */
export class TextGate {
	/** Text other than white space has been shown. */
	#hasShown = false
	#held = ''
	#isClosed = false

	/** Returns the text that may be shown. */
	take(piece: string): string {
		this.#held += piece
		if (this.#isClosed) return ''
		if (!this.#hasShown && this.#mayBeBare()) return ''
		const opener = firstOpener(this.#held)
		if (opener !== undefined) this.#isClosed = true
		const shown = this.#held.slice(0, opener ?? this.#held.length - heldBack(this.#held, CALL_OPENERS))
		this.#held = this.#held.slice(shown.length)
		this.#hasShown ||= shown.trim() !== ''
		return shown
	}

	/** The text that is held back. */
	get held(): string {
		return this.#held
	}

	#mayBeBare(): boolean {
		const text = this.#held.slice(0, BEGINNING).trimStart()
		if (text === '') return this.#held.length < BEGINNING
		if (!/^[[{`]/.test(text)) return false
		// Everything after such a beginning is held back too.
		this.#isClosed = BARE.test(text)
		return this.#isClosed || text.length < BARE_LENGTH
	}
}

/** The index at which the first call may begin. */
function firstOpener(text: string): number | undefined {
	let first: number | undefined
	for (const opener of CALL_OPENERS) {
		const at = text.indexOf(opener)
		if (at >= 0 && at < (first ?? Infinity)) first = at
	}
	return first
}
