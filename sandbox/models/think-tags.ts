/** Parts reasoning that a model writes into its text, as many local ones do, from the answer. */

/** How the reasoning begins and ends. */
const TAGS: readonly (readonly [open: string, close: string])[] = [
	['<think>', '</think>'],
	['<thinking>', '</thinking>'],
	['<thought>', '</thought>'],
	['<reasoning>', '</reasoning>'],
	['[THINK]', '[/THINK]'],
]

/** White space at the beginning that is looked at again with each piece. */
const BLANK_LIMIT = 4 * 1024

export interface Parted {
	text: string
	reasoning: string
}

/** Takes the pieces of a stream. Only blocks at the beginning are reasoning: further on, an answer may speak of such tags. */
export class ThinkTags {
	#waiting = ''
	#state: 'before' | 'within' | 'after' = 'before'
	#close = ''

	/** What is certain so far. */
	take(piece: string): Parted {
		if (this.#state === 'after') return { text: piece, reasoning: '' }
		const parted = { text: '', reasoning: '' }
		this.#waiting += piece
		while (this.#waiting !== '') {
			if (this.#state === 'within') {
				const end = this.#waiting.indexOf(this.#close)
				if (end < 0) {
					const held = heldBack(this.#waiting, [this.#close])
					parted.reasoning += this.#waiting.slice(0, this.#waiting.length - held)
					this.#waiting = this.#waiting.slice(this.#waiting.length - held)
					break
				}
				parted.reasoning += this.#waiting.slice(0, end)
				this.#waiting = this.#waiting.slice(end + this.#close.length)
				this.#state = 'before'
			} else {
				const start = this.#waiting.trimStart()
				const tag = TAGS.find(([open]) => start.startsWith(open))
				if (tag) {
					this.#state = 'within'
					this.#close = tag[1]
					this.#waiting = start.slice(tag[0].length)
				} else if (start === '' && this.#waiting.length > BLANK_LIMIT) {
					const blank = this.#all()
					if (this.#close === '') parted.text += blank
				} else if (TAGS.some(([open]) => open.startsWith(start))) break
				else {
					// The blank lines after the reasoning are not the answer's.
					if (this.#close !== '') this.#waiting = start
					this.#state = 'after'
					parted.text += this.#all()
				}
			}
		}
		return parted
	}

	/** The rest. Reasoning that never ends is all reasoning. */
	end(): Parted {
		const rest = this.#all()
		return this.#state === 'within' ? { text: '', reasoning: rest } : { text: rest, reasoning: '' }
	}

	#all(): string {
		const all = this.#waiting
		this.#waiting = ''
		return all
	}
}

/**
 * Parts a whole text that ends its reasoning without having begun it, as where the server's template writes the first tag.
 * The tag must end its line: an answer may speak of it.
 */
export function withoutOpenTag(text: string): Parted | undefined {
	for (const [open, close] of TAGS) {
		const end = text.indexOf(close)
		if (end < 0 || text.slice(0, end).includes(open)) continue
		const rest = text.slice(end + close.length)
		if (/^[ \t]*(\r?\n|$)/.test(rest)) return { reasoning: text.slice(0, end), text: rest.trimStart() }
	}
	return undefined
}

/** How many characters at the end of the text may be the beginning of one of the words. */
export function heldBack(text: string, words: readonly string[]): number {
	let held = 0
	for (const word of words) {
		for (let length = Math.min(word.length - 1, text.length); length > held; length--) {
			// Nearly always the first character decides; to cut out each possible end would cost more than the rest of a piece.
			if (text.charCodeAt(text.length - length) !== word.charCodeAt(0)) continue
			if (text.endsWith(word.slice(0, length))) held = length
		}
	}
	return held
}
