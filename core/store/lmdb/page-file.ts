/** A data file as pages, each taken once: what is read twice, or does not exist, is damage. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { Damage, headerSize, isBig, pageKind, readMeta, readNodes, wide } from './page.ts'
import type { Meta, Node } from './page.ts'

const unwritten = 64 * 1024 * 1024

export class PageFile implements Disposable {
	readonly size: number
	/** Pages taken so far. */
	readonly used = new Set<number>()
	/** How many of them are overflow pages. */
	overflows = 0
	readonly #fd: number
	readonly #buffers: Buffer[] = []
	#pageSize = 0
	#meta: Meta | undefined

	constructor(path: string) {
		this.#fd = openSync(path, 'r')
		this.size = fstatSync(this.#fd).size
	}

	/**
	 * The newer of the two heads. Commits write them in turns, so that they are always one transaction apart, but for a copy
	 * made by LMDB that nobody has written to yet: the first head of that is empty.
	 */
	meta(): Meta {
		const first = readMeta(this.#head(0), 0)
		if (!isPageSize(first.pageSize)) throw new Damage('its head (page 0) has an impossible page size')
		this.#pageSize = first.pageSize
		const second = readMeta(this.#head(first.pageSize), 1)
		const isNew = first.transaction === 0 && second.transaction === 0
		const apart = Math.abs(first.transaction - second.transaction)
		const isCopy =
			first.transaction === 0 && first.main.root === null && first.free.root === null && first.lastPage === 1
		if (second.pageSize !== first.pageSize || !(isNew || apart === 1 || isCopy))
			throw new Damage('its two heads do not fit together')
		const meta = first.transaction > second.transaction ? first : second
		// The last pages may never have been written, where the transaction that took them gave them back.
		if (meta.lastPage * this.#pageSize > this.size + unwritten) throw new Damage(`it is cut off at ${this.size} bytes`)
		this.#meta = meta
		return meta
	}

	exists(page: number): boolean {
		return page >= 2 && page <= (this.#meta?.lastPage ?? 0)
	}

	/** The nodes of a page; they are valid until the next call with the same `slot`. */
	nodes(page: number, slot: number, kind: number): Node[] {
		const buffer = (this.#buffers[slot] ??= Buffer.alloc(this.#pageSize))
		this.#take(page, 1)
		this.#fill(buffer, page)
		this.#checkHeader(buffer, page, kind)
		return readNodes(buffer, kind, page)
	}

	/** A leaf entry's data, which may lie on pages of its own. */
	value(node: Node): Buffer {
		if (!isBig(node)) return node.data
		const page = wide(node.data, 0)
		const count = Math.ceil((headerSize + node.size) / this.#pageSize)
		if (wide(node.data, 16) !== count) throw new Damage(`page ${page} has not the size of its record`)
		this.#take(page, count)
		this.overflows += count
		const bytes = Buffer.alloc(count * this.#pageSize)
		this.#fill(bytes, page)
		this.#checkHeader(bytes, page, pageKind.overflow)
		if (bytes.readUInt32LE(20) !== count) throw new Damage(`page ${page} has not the size of its record`)
		return bytes.subarray(headerSize, headerSize + node.size)
	}

	[Symbol.dispose](): void {
		closeSync(this.#fd)
	}

	#checkHeader(page: Buffer, number: number, kind: number): void {
		if (wide(page, 0) !== number || (page.readUInt16LE(18) & 0xf) !== kind)
			throw new Damage(`page ${number} is not what it should be`)
		if (wide(page, 8) > (this.#meta?.transaction ?? 0)) throw new Damage(`page ${number} is younger than the whole`)
	}

	#take(first: number, count: number): void {
		for (let page = first; page < first + count; page++) {
			if (!this.exists(page)) throw new Damage(`page ${page} is referred to and does not exist`)
			if (this.used.has(page)) throw new Damage(`page ${page} is used twice`)
			this.used.add(page)
		}
	}

	#fill(buffer: Buffer, page: number): void {
		const position = page * this.#pageSize
		if (position + buffer.length > this.size) throw new Damage(`it is cut off at ${this.size} bytes`)
		readSync(this.#fd, buffer, 0, buffer.length, position)
	}

	#head(position: number): Buffer {
		const buffer = Buffer.alloc(512)
		if (position + buffer.length > this.size) throw new Damage(`it is cut off at ${this.size} bytes`)
		readSync(this.#fd, buffer, 0, buffer.length, position)
		return buffer
	}
}

function isPageSize(size: number): boolean {
	return size >= 512 && size <= 65_536 && (size & (size - 1)) === 0
}
