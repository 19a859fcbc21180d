/** Separates the answer from reasoning that a model writes into its text, as many local models do. */

const TAGS: readonly (readonly [open: string, close: string])[] = [
	['<think>', '</think>'],
	['<thinking>', '</thinking>'],
	['<thought>', '</thought>'],
	['<reasoning>', '</reasoning>'],
	['[THINK]', '[/THINK]'],
]

/** Limit of leading white space that is checked again with each piece. */
const BLANK_LIMIT = 4 * 1024

export interface Parted {
	text: string
	reasoning: string
}

/** Processes the pieces of an answer. Only blocks at the beginning are reasoning: later, an answer may be about such tags. */
export class ThinkTags {
	#waiting = ''
	#state: 'before' | 'within' | 'after' = 'before'
	#close = ''

	/** Returns the parts that are certain so far. */
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
					// Blank lines after the reasoning do not belong to the answer.
					if (this.#close !== '') this.#waiting = start
					this.#state = 'after'
					parted.text += this.#all()
				}
			}
		}
		return parted
	}

	/** Returns the rest. If the reasoning has no end, all of it is reasoning. */
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
 * Separates a whole text that has only the closing tag, because the server's template writes the opening one into the prompt. The
 * tag must be at the end of its line: an answer may be about it.
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

/** The number of characters at the end of the text that may be the beginning of one of the words. */
export function heldBack(text: string, words: readonly string[]): number {
	let held = 0
	for (const word of words) {
		for (let length = Math.min(word.length - 1, text.length); length > held; length--) {
			// The first character nearly always decides; slicing each possible end would cost more than the rest of the work.
			if (text.charCodeAt(text.length - length) !== word.charCodeAt(0)) continue
			if (text.endsWith(word.slice(0, length))) held = length
		}
	}
	return held
}
