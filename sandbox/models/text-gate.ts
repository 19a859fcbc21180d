import { CALL_OPENERS } from './text-calls.ts'
import { heldBack } from './think-tags.ts'

/** How a text that is one call in JSON begins; of a shorter beginning it cannot be told. */
const BARE = /^(```\w*\s*)?\[?\s*\{\s*"(name|function|type|id|parameters|arguments)"/
const BARE_LENGTH = 40
/** Characters in which that beginning, or any text at all, must come. */
const BEGINNING = 4 * 1024

/** Holds back text from where a tool call in text form may begin, so that none is shown as it is streamed. */
export class TextGate {
	/** More than white space. */
	#hasShown = false
	#held = ''
	#isClosed = false

	/** Returns what may be shown. */
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

	/** What was held back. */
	get held(): string {
		return this.#held
	}

	#mayBeBare(): boolean {
		const text = this.#held.slice(0, BEGINNING).trimStart()
		if (text === '') return this.#held.length < BEGINNING
		if (!/^[[{`]/.test(text)) return false
		// Whatever follows such a beginning is held back as well.
		this.#isClosed = BARE.test(text)
		return this.#isClosed || text.length < BARE_LENGTH
	}
}

/** Where the first call may begin. */
function firstOpener(text: string): number | undefined {
	let first: number | undefined
	for (const opener of CALL_OPENERS) {
		const at = text.indexOf(opener)
		if (at >= 0 && at < (first ?? Infinity)) first = at
	}
	return first
}
