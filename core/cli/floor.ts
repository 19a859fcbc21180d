/** Controls the keyboard input: a question takes it from the reader of lines, and returns it. */
export class Floor {
	#reader: { rest(): void; goOn(): void } | undefined
	#taken = 0

	take(): Disposable {
		if (this.#taken++ === 0) this.#reader?.rest()
		return {
			[Symbol.dispose]: () => {
				if (--this.#taken === 0) this.#reader?.goOn()
			},
		}
	}

	/** `goOn` is called at once, unless a question is asked. */
	read(reader: { rest(): void; goOn(): void }): Disposable {
		this.#reader = reader
		if (this.#taken === 0) reader.goOn()
		return { [Symbol.dispose]: () => void (this.#reader = undefined) }
	}
}
