/**
 * The pages of an LMDB data file of format 2, as lmdb-js writes it (the header files are in its package, under
 * dependencies/lmdb/libraries/liblmdb), read without LMDB. All numbers are little-endian.
 *
 *     page header   number u64 · transaction u64 · pad u16 · flags u16 · lower u16 · upper u16
 *                   (in overflow pages the last two are their count, u32)
 *     node          low u16 · high u16 · flags u16 · key's size u16 · key · data
 *                   (in a branch the first three are the child's page number, in a leaf the data's size and its flags)
 *     tree          pad u32 · flags u16 · depth u16 · branch, leaf, overflow pages, entries, root page: u64 each
 *     head          page header · magic u32 · version u32 · address u64 · map size u64 · free pages' tree (its pad is the
 *                   page size) · main tree · last page u64 · transaction u64
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

const headerSize = 24
const nodeHeaderSize = 8
const treeSize = 48
const headSize = 160
const MAX_PAGE_SIZE = 65_536
const MAX_PAGE = Math.floor(Number.MAX_SAFE_INTEGER / MAX_PAGE_SIZE)
const headAttempts = 10
const magic = 0xbeefc0de
const formatVersion = 2
const pageKind = { branch: 1, leaf: 2, overflow: 4, head: 8 } as const
const nodeFlag = { big: 1, tree: 2 } as const
/** The root of a tree without entries. */
const noPage = 0xffff_ffff_ffff_ffffn

export interface Tree {
	/** How its keys are compared; 0 for plain bytes. */
	flags: number
	depth: number
	entries: number
	/** Null if it is empty. */
	root: number | null
}

interface Head {
	pageSize: number
	free: Tree
	main: Tree
	lastPage: number
	transaction: number
}

export interface Node {
	key: Buffer
	/** In a branch: the child's page number. */
	child: number
	/** In a leaf. */
	flags: number
	data: Buffer
	size: number
}

/** What is wrong with a data file, as the end of a sentence about it. */
export class Damage extends Error {}

/** Each page is read at most once: a page that is used twice, or does not exist, is damage. */
export class DataFile implements Disposable {
	/** Pages that were read. */
	readonly used = new Set<number>()
	readonly #fd: number
	/** Both heads, as they were when the newer one was chosen. */
	#heads = Buffer.alloc(0)
	#newest: Head | undefined

	constructor(path: string) {
		this.#fd = openSync(path, 'r')
	}

	/** In bytes. Grows while a gateway writes to the file. */
	get size(): number {
		return fstatSync(this.#fd).size
	}

	/**
	 * The newer of the two heads. Commits alternate between them, so they are always one transaction apart. Only in a copy made
	 * by LMDB that has not been written to yet, the first one is empty.
	 */
	head(): Head {
		// A commit between the two reads would result in a pair of heads that never existed.
		let attempts = 0
		do this.#heads = this.#readHeads()
		while (++attempts < headAttempts && !this.isSettled())
		if (this.#heads.length < headSize) throw this.#cutOff()
		const first = readHead(this.#heads, 0)
		if (!isPageSize(first.pageSize)) throw new Damage('its head (page 0) has an impossible page size')
		if (this.#heads.length < 2 * headSize) throw this.#cutOff()
		const second = readHead(this.#heads.subarray(headSize), 1)
		const isNew = first.transaction === 0 && second.transaction === 0
		const isCopy = first.transaction === 0 && first.main.root === null && first.lastPage === 1
		const apart = Math.abs(first.transaction - second.transaction)
		if (second.pageSize !== first.pageSize || !(isNew || isCopy || apart === 1))
			throw new Damage('its two heads do not match')
		return (this.#newest = first.transaction > second.transaction ? first : second)
	}

	/**
	 * Whether there was no commit since `head`. Then the pages of the newest state have not changed, because LMDB overwrites
	 * pages of older states only.
	 */
	isSettled(): boolean {
		return this.#readHeads().equals(this.#heads)
	}

	exists(page: number): boolean {
		return page >= 2 && page <= (this.#newest?.lastPage ?? 0)
	}

	/** The nodes of a branch or a leaf. */
	nodes(number: number, isLeaf: boolean): Node[] {
		const page = this.#page(number, 1, isLeaf ? pageKind.leaf : pageKind.branch)
		const [lower, upper, room] = [page.readUInt16LE(20), page.readUInt16LE(22), page.length - headerSize]
		if (lower > upper || upper > room || lower % 2 !== 0) throw new Damage(`page ${number} has impossible bounds`)
		const nodes: Node[] = []
		for (let index = 0; index < lower / 2; index++) {
			const at = page.readUInt16LE(headerSize + 2 * index)
			const node = at >= upper && at + nodeHeaderSize <= room ? readNode(page, headerSize + at, isLeaf) : undefined
			if (!node) throw new Damage(`page ${number} has an entry outside of itself`)
			nodes.push(node)
		}
		return nodes
	}

	/** A leaf entry's data, which may be in overflow pages. */
	value({ flags, data, size }: Node): Buffer {
		if (!(flags & nodeFlag.big)) return data
		const number = wide(data, 0)
		const count = Math.ceil((headerSize + size) / (this.#newest?.pageSize ?? 0))
		const page = wide(data, 16) === count ? this.#page(number, count, pageKind.overflow) : undefined
		if (page?.readUInt32LE(20) !== count) throw new Damage(`page ${number} does not have the size of its record`)
		return page.subarray(headerSize, headerSize + size)
	}

	[Symbol.dispose](): void {
		closeSync(this.#fd)
	}

	#page(first: number, count: number, kind: number): Buffer {
		const { pageSize, transaction } = this.#newest as Head
		// Counted from 0: for a page number above 2^53, `page++` would change nothing.
		for (let index = 0; index < count; index++) {
			const page = first + index
			if (!this.exists(page)) throw new Damage(`page ${page} is referred to and does not exist`)
			if (this.used.has(page)) throw new Damage(`page ${page} is used twice`)
			this.used.add(page)
		}
		const page = this.#read(first * pageSize, count * pageSize)
		if (page.length < count * pageSize) throw this.#cutOff()
		if (wide(page, 0) !== first || (page.readUInt16LE(18) & 0xf) !== kind)
			throw new Damage(`page ${first} is not what it should be`)
		if (wide(page, 8) > transaction) throw new Damage(`page ${first} is newer than the file`)
		return page
	}

	/** Shorter than two heads if the file is cut off, or the first head has no valid page size to find the second one. */
	#readHeads(): Buffer<ArrayBuffer> {
		const first = this.#read(0, headSize)
		const pageSize = first.length === headSize ? first.readUInt32LE(48) : 0
		return isPageSize(pageSize) ? Buffer.concat([first, this.#read(pageSize, headSize)]) : first
	}

	/** Returns fewer bytes at the end of the file. */
	#read(position: number, length: number): Buffer<ArrayBuffer> {
		const bytes = Buffer.allocUnsafeSlow(length)
		return bytes.subarray(0, readSync(this.#fd, bytes, 0, length, position))
	}

	#cutOff(): Damage {
		return new Damage(`it is cut off at ${this.size} bytes`)
	}
}

/** Whether the node's data is the header of a tree. */
export function isTree({ flags, data }: Node): boolean {
	return (flags & nodeFlag.tree) !== 0 && data.length === treeSize
}

/** Reads the header of a tree, which begins at the byte `at`. */
export function readTree(bytes: Buffer, at: number): Tree {
	const root = bytes.readBigUInt64LE(at + 40)
	return {
		flags: bytes.readUInt16LE(at + 4),
		depth: bytes.readUInt16LE(at + 6),
		entries: wide(bytes, at + 32),
		root: root === noPage ? null : Number(root),
	}
}

/** The head on page `number`, which is 0 or 1. */
function readHead(page: Buffer, number: number): Head {
	const isHead = wide(page, 0) === number && page.readUInt16LE(18) === pageKind.head
	if (!isHead || page.readUInt32LE(headerSize) !== magic || page.readUInt32LE(headerSize + 4) !== formatVersion)
		throw new Damage(`its head (page ${number}) is not one of LMDB's`)
	const lastPage = wide(page, 144)
	if (lastPage > MAX_PAGE) throw new Damage(`its head (page ${number}) has an impossible last page`)
	return {
		pageSize: page.readUInt32LE(48),
		free: readTree(page, 48),
		main: readTree(page, 96),
		lastPage,
		transaction: wide(page, 152),
	}
}

/** A 64-bit number. Above 2^53 it is inexact, but no intact file contains such a number. */
export function wide(bytes: Buffer, at: number): number {
	return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32
}

/** Undefined if the node does not end within the page. */
function readNode(page: Buffer, at: number, isLeaf: boolean): Node | undefined {
	const low = page.readUInt32LE(at)
	const flags = page.readUInt16LE(at + 4)
	const keyEnd = at + nodeHeaderSize + page.readUInt16LE(at + 6)
	const length = !isLeaf ? 0 : flags & nodeFlag.big ? 24 : low
	if (keyEnd + length > page.length) return undefined
	const key = page.subarray(at + nodeHeaderSize, keyEnd)
	const data = page.subarray(keyEnd, keyEnd + length)
	return isLeaf
		? { key, data, flags, size: low, child: 0 }
		: { key, data, flags: 0, size: 0, child: low + flags * 2 ** 32 }
}

function isPageSize(size: number): boolean {
	return size >= 512 && size <= MAX_PAGE_SIZE && (size & (size - 1)) === 0
}
