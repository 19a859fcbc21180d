/**
 * Checks a data file by reading it, without LMDB, which would crash the process on a damaged one: both heads, each page's
 * number, bounds and order of keys, that no page is used twice or listed as free as well, and the checksum of each record.
 */
import { Damage, DataFile, isTree, readTree, wide } from './data-file.ts'
import type { Node, Tree } from './data-file.ts'
import { isIntact } from '../store/lmdb/record.ts'
import { sealedTables } from '../store/lmdb/tables.ts'

export interface FileFinding {
	/** What is wrong with the file, as the end of a sentence about it; null if it is intact. */
	damage: string | null
	/** False if only a part of the file was checked. */
	complete: boolean
	/** False if there was a commit during the check: then pages that were read late may belong to a later state. */
	settled: boolean
	/** The numbers of pages and records that were checked. */
	pages: number
	records: number
	/** For each table, the number of records that were read and the key of the last one. */
	tables?: Record<string, { records: number; last: string | null }>
}

export interface CheckLimits {
	/** Files up to this size are checked completely; of larger ones, a random part that takes about as long. Default Infinity. */
	wholeBytes?: number
	/** On a slow disk the check ends after this time, with the result so far. Default Infinity. */
	withinMs?: number
}

type Order = (a: Buffer, b: Buffer) => number
type Visit = (node: Node) => void

/** The flag of a tree whose keys are numbers. */
const numberKeys = 8

/**
 * Throws only if the file cannot be read, not for its contents. If a process writes to the file meanwhile, a damage is certain
 * only if the result is `settled`, or if a read transaction kept the pages in place.
 */
export function checkFile(path: string, { wholeBytes = Infinity, withinMs = Infinity }: CheckLimits = {}): FileFinding {
	using file = new DataFile(path)
	const share = Math.min(1, wholeBytes / file.size)
	const until = performance.now() + withinMs
	const tables: NonNullable<FileFinding['tables']> = {}
	let complete = share === 1
	let damage: string | null = null

	/** Whether to check a subtree. `isEnd`: it is the first or the last of a branch; most tables have their newest records there. */
	const isChosen = (isEnd: boolean): boolean => {
		if (performance.now() > until) complete = false
		else if (share === 1 || isEnd || Math.random() < share) return true
		return false
	}
	/** Visits all entries of a tree in the order of their keys. */
	const walk = (name: string, { root, depth, entries, flags }: Tree, order: Order, visit: Visit): void => {
		if (flags !== (order === orderOfNumbers ? numberKeys : 0)) throw new Damage(`${name} has impossible flags`)
		let count = 0
		let last: Buffer | undefined
		let lastIsLeaf = false
		// A branch's key is above all keys of its left child, and not above those of its right child, which may begin with it.
		const mustRise = (page: number, key: Buffer, isLeaf: boolean): void => {
			const step = last ? order(key, last) : 1
			if (step < 0 || (step === 0 && (lastIsLeaf || !isLeaf))) throw new Damage(`page ${page} has keys out of order`)
			last = key
			lastIsLeaf = isLeaf
		}
		const descend = (page: number, level: number): void => {
			const isLeaf = level === depth
			const nodes = file.nodes(page, isLeaf)
			for (const [index, node] of nodes.entries()) {
				// The first key of a branch is empty.
				if (isLeaf || index > 0) mustRise(page, node.key, isLeaf)
				if (!isLeaf) {
					if (isChosen(index === 0 || index === nodes.length - 1)) descend(node.child, level + 1)
					continue
				}
				count++
				visit(node)
			}
		}
		if (root !== null) descend(root, 1)
		if (complete && count !== entries) throw new Damage(`${name} should have ${entries} entries and has ${count}`)
	}

	try {
		const head = file.head()
		const free: number[] = []
		walk('its list of free pages', head.free, orderOfNumbers, (node) => {
			for (const page of freePages(file, node)) free.push(page)
		})
		walk('its list of tables', head.main, Buffer.compare, (node) => {
			if (!isTree(node)) throw new Damage('its list of tables has an invalid entry')
			const name = node.key.toString('utf8').replace(/\0$/, '')
			const table = (tables[name] = { records: 0, last: null as string | null })
			const isSealed = sealedTables.includes(name)
			walk(`table ${name}`, readTree(node.data, 0), Buffer.compare, (entry) => {
				const key = entry.key.toString('utf8')
				const value = file.value(entry)
				if (isSealed ? !isIntact(key, value) : value.length > 0)
					throw new Damage(`the record ${JSON.stringify(key.split('\0'))} (table ${name}) is damaged`)
				table.records++
				table.last = key
			})
		})
		const both = free.find((page) => file.used.has(page))
		if (both !== undefined) throw new Damage(`page ${both} is in use and listed as free`)
	} catch (error) {
		if (!(error instanceof Damage)) throw error
		damage = error.message
	}
	const records = Object.values(tables).reduce((sum, table) => sum + table.records, 0)
	return { damage, complete, settled: file.isSettled(), pages: file.used.size, records, tables }
}

/** The list of free pages has transaction numbers as keys. */
function orderOfNumbers(a: Buffer, b: Buffer): number {
	if (a.length !== 8 || b.length !== 8) throw new Damage('its list of free pages has an invalid key')
	return wide(a, 0) - wide(b, 0)
}

/** One list of free pages: its length, then page numbers. A negative number is the length of the block whose first page follows. */
function freePages(file: DataFile, node: Node): number[] {
	const list = file.value(node)
	const length = list.length >= 8 ? wide(list, 0) : -1
	if (length < 0 || 8 * (length + 1) > list.length)
		throw new Damage('its list of free pages is longer than the space for it')
	const pages: number[] = []
	for (let i = 1; i <= length; i++) {
		const entry = Number(list.readBigInt64LE(8 * i))
		if (entry === 0) continue
		const count = entry < 0 ? -entry : 1
		const first = entry > 0 ? entry : i < length ? Number(list.readBigInt64LE(8 * ++i)) : 0
		if (!file.exists(first) || !file.exists(first + count - 1))
			throw new Damage(`its list of free pages contains a page that does not exist, ${first}`)
		for (let page = first; page < first + count; page++) pages.push(page)
	}
	return pages
}
