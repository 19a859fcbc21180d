/** Kinds of damage to a data file. Each gets its bytes, and the number of a page, and returns damaged bytes. */
import { createHash } from 'node:crypto'

const pageSize = 4096

export const pageDamages = {
	'cut off': (file: Buffer, page: number) => file.subarray(0, page * pageSize),
	'with a page of zeros': (file: Buffer, page: number) => replace(file, page, Buffer.alloc(pageSize)),
	'with a page of noise': (file: Buffer, page: number) => replace(file, page, noise(pageSize)),
	'with a page from elsewhere': (file: Buffer, page: number) => {
		const other = page > 4 ? page - 1 : page + 1
		return replace(file, page, file.subarray(other * pageSize, (other + 1) * pageSize))
	},
} as const

export const fileDamages = {
	'without its heads': (file: Buffer) => Buffer.concat([Buffer.alloc(2 * pageSize), file.subarray(2 * pageSize)]),
	'without its first page': (file: Buffer) => file.subarray(pageSize),
	'of noise': (file: Buffer) => noise(file.length),
	'of text': () => Buffer.from('this is no data file\n'.repeat(1000)),
	'without anything': () => Buffer.alloc(0),
} as const

/** The file with one bit flipped, the `nth` of all. */
export function flipBit(file: Buffer, nth: number): Buffer {
	const copy = Buffer.from(file)
	const at = nth >> 3
	copy[at] = (copy[at] as number) ^ (1 << (nth & 7))
	return copy
}

function replace(file: Buffer, page: number, bytes: Buffer): Buffer {
	const copy = Buffer.from(file)
	bytes.copy(copy, page * pageSize)
	return copy
}

/** The same noise in each run, so that a failure is reproducible. */
function noise(length: number): Buffer {
	const blocks: Buffer[] = []
	for (let i = 0; i * 32 < length; i++) blocks.push(createHash('sha256').update(`noise ${i}`).digest())
	return Buffer.concat(blocks).subarray(0, length)
}
