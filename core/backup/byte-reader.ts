import { damaged } from './manifest.ts'

/** Reads exact numbers of bytes from a stream of chunks, and holds at most one chunk. */
export class ByteReader {
	readonly #source: AsyncIterator<Buffer>
	#rest: Buffer = Buffer.alloc(0)

	constructor(source: AsyncIterable<Buffer>) {
		this.#source = source[Symbol.asyncIterator]()
	}

	/** Throws `backup_damaged` if the stream ends first. */
	async take(count: number): Promise<Buffer> {
		const parts = await Array.fromAsync(this.stream(count))
		return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)
	}

	/** The next `count` bytes, chunk by chunk. */
	async *stream(count: number): AsyncGenerator<Buffer> {
		for (let left = count; left > 0;) {
			if (this.#rest.length === 0 && !(await this.#readChunk())) throw damaged('it is cut off')
			const part = this.#rest.subarray(0, left)
			this.#rest = this.#rest.subarray(part.length)
			left -= part.length
			yield part
		}
	}

	async ended(): Promise<boolean> {
		return this.#rest.length === 0 && !(await this.#readChunk())
	}

	/** Releases what the source holds. */
	async close(): Promise<void> {
		await this.#source.return?.()
	}

	/** False at the end of the stream. */
	async #readChunk(): Promise<boolean> {
		for (;;) {
			const { done, value } = await this.#source.next()
			if (done) return false
			if (value.length === 0) continue
			this.#rest = value
			return true
		}
	}
}
