interface Reader {
	pause(): void
	resume(): void
}

/** Decides who reads the keyboard: the reader of lines pauses while a question is asked. */
export class KeyboardTurn {
	#reader: Reader | undefined
	#questions = 0

	ask(): Disposable {
		if (this.#questions++ === 0) this.#reader?.pause()
		return {
			[Symbol.dispose]: () => {
				if (--this.#questions === 0) this.#reader?.resume()
			},
		}
	}

	/** `resume` is called at once, unless a question is asked. */
	read(reader: Reader): Disposable {
		this.#reader = reader
		if (this.#questions === 0) reader.resume()
		return { [Symbol.dispose]: () => void (this.#reader = undefined) }
	}
}
