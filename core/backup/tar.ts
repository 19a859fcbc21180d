/**
 * The archive inside a backup: a plain ustar of regular files, which any tar reads. Archives are not trusted: other kinds of
 * entries, such as links and devices, are refused.
 */
import { Header } from 'tar/header'
import { Pax } from 'tar/pax'
import { damaged } from './manifest.ts'
import type { Member } from './manifest.ts'

const block = 512
/** Limit of a pax header, which contains a long name or size. */
const maxPaxBytes = 8 * 1024

/** The bytes before the contents of a file. `padding` follows the contents. `modified`: ISO 8601. */
export function tarHeader(file: Omit<Member, 'sha256'> & { modified: string }): Buffer {
	const { path, bytes, executable, modified } = file
	const fields = {
		path,
		size: bytes,
		mode: executable ? 0o700 : 0o600,
		uid: 0,
		gid: 0,
		mtime: new Date(Math.floor(Date.parse(modified) / 1000) * 1000),
		type: 'File' as const,
	}
	const header = new Header(fields)
	const needsPax = header.encode()
	const ustar = header.block as Buffer
	return needsPax ? Buffer.concat([new Pax({ path, size: bytes }).encode(), ustar]) : ustar
}

/** The zeros that fill the last block of an entry of this size. */
export function padding(bytes: number): Buffer {
	return Buffer.alloc((block - (bytes % block)) % block)
}

export const tarEnd: Buffer = Buffer.alloc(2 * block)

export interface TarEntry {
	path: string
	bytes: number
	/** Must be read to its end before the next entry. */
	body: AsyncIterable<Buffer>
}

/** Throws `backup_damaged` for an archive that this file could not have written. */
export async function* readTar(source: AsyncIterable<Buffer>): AsyncGenerator<TarEntry> {
	const reader = new ByteReader(source)
	try {
		for (;;) {
			const first = await reader.take(block)
			if (isEmpty(first)) break
			let header = decode(first)
			if (header.type === 'ExtendedHeader') {
				const size = header.size ?? 0
				if (size > maxPaxBytes) throw damaged('a header in it is too long')
				const extension = Pax.parse((await reader.take(size)).toString('utf8'))
				await skipPadding(reader, size)
				header = decode(await reader.take(block), extension)
			}
			const { path, size, type } = header
			if (type !== 'File' || path === undefined || size === undefined)
				throw damaged(`it contains something that is not a regular file, "${String(path).slice(0, 200)}" (${type})`)
			yield { path, bytes: size, body: reader.stream(size) }
			await skipPadding(reader, size)
		}
		if (!isEmpty(await reader.take(block)) || !(await reader.ended())) throw damaged('there is data after its end')
	} finally {
		await reader.close()
	}
}

function decode(bytes: Buffer, extension?: Pax): Header {
	let header: Header
	try {
		header = new Header(bytes, 0, extension)
	} catch {
		throw damaged('a header in it cannot be read')
	}
	if (!header.cksumValid) throw damaged('a header in it has a wrong checksum')
	return header
}

async function skipPadding(reader: ByteReader, size: number): Promise<void> {
	const rest = await reader.take(padding(size).length)
	if (!isEmpty(rest)) throw damaged('there is data between its files')
}

function isEmpty(bytes: Buffer): boolean {
	return bytes.every((byte) => byte === 0)
}

/** Reads exact numbers of bytes from a stream of chunks, and holds at most one chunk. */
class ByteReader {
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

	async close(): Promise<void> {
		await this.#source.return?.()
	}

	/** False at the end of the stream. */
	async #readChunk(): Promise<boolean> {
		const { done, value } = await this.#source.next()
		if (!done) this.#rest = value
		return !done
	}
}
