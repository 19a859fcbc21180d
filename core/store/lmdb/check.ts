/**
 * Looks over a data file by reading it, without LMDB, which would end the process over a damaged one: both heads, each
 * page's number, bounds and order of keys, the counts that each tree keeps of itself, that no page is used twice or
 * listed as free as well, and the checksum of every record.
 */
import { sealedTables } from './tables.ts'
import { isIntact } from './frame.ts'
import { PageFile } from './page-file.ts'
import { Damage, isTree, pageKind, readTree, wide } from './page.ts'
import type { Node, Tree } from './page.ts'

export interface Finding {
	/** What is wrong with the file, in words that go on from its name; null where nothing is. */
	damage: string | null
	/** False where only a share of the file was looked at. */
	complete: boolean
	/** Pages and records that were looked at. */
	pages: number
	records: number
	/** What was seen of each table: how many records, and the key of the last one. */
	tables?: Record<string, { records: number; last: string | null }>
}

/** Slots for the pages of one tree, by level. */
const deepest = 32
const longestKey = 4096
/** The flag of a tree whose keys are numbers. */
const numberKeys = 8

export interface CheckLimits {
	/** Files up to this size are looked at as a whole; of larger ones a share that takes about as long. */
	wholeBytes: number
	/** On a slow disk the look ends after this long, with what was seen until then. */
	withinMs: number
}

/** What the file holds never throws, only what keeps it from being read. */
export function checkFile(path: string, { wholeBytes, withinMs }: CheckLimits): Finding {
	using file = new PageFile(path)
	const scope = new Scope(Math.min(1, wholeBytes / file.size), withinMs)
	let records = 0
	let damage: string | null = null
	const tables: NonNullable<Finding['tables']> = {}
	try {
		const meta = file.meta()
		const free: number[] = []
		walk(file, meta.free, { name: 'its free pages', slot: 0, scope, order: orderOfNumbers }, (node) => {
			for (const page of freePages(file.value(node), file)) free.push(page)
		})
		walk(file, meta.main, { name: 'its list of tables', slot: 0, scope, order: Buffer.compare }, (node) => {
			if (!isTree(node)) throw new Damage('its list of tables has an entry that is none')
			const name = node.key.toString('utf8').replace(/\0$/, '')
			const table = (tables[name] = { records: 0, last: null as string | null })
			walk(file, readTree(node.data, 0), { name, slot: deepest, scope, order: Buffer.compare }, (entry) => {
				const key = entry.key.toString('utf8')
				checkRecord(name, key, file.value(entry))
				records++
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
	return { damage, complete: scope.complete, pages: file.used.size, records, tables }
}

/** How much of the file is looked at. */
class Scope {
	complete: boolean
	readonly #share: number
	readonly #until: number

	constructor(share: number, withinMs: number) {
		this.#share = share
		this.complete = share === 1
		this.#until = performance.now() + withinMs
	}

	/** Whether to look at a subtree; `isEnd` for the first and the last under a branch. */
	wants(isEnd: boolean): boolean {
		if (performance.now() > this.#until) this.complete = false
		else if (this.#share === 1 || isEnd || Math.random() < this.#share) return true
		return false
	}
}

interface WalkOptions {
	name: string
	slot: number
	scope: Scope
	order: (a: Buffer, b: Buffer) => number
}

/** Goes through a tree in the order of its keys, and compares it with what it says of itself. */
function walk(file: PageFile, tree: Tree, options: WalkOptions, visit: (node: Node) => void): void {
	const { name, slot, scope, order } = options
	if (tree.flags !== (order === orderOfNumbers ? numberKeys : 0)) throw new Damage(`${name} has impossible flags`)
	const overflowsBefore = file.overflows
	let branches = 0
	let leaves = 0
	let entries = 0
	const scratch = Buffer.alloc(longestKey)
	let last: Buffer | undefined

	const descend = (page: number, level: number, low: Buffer | undefined, high: Buffer | undefined): void => {
		if (level > deepest) throw new Damage(`the tree of ${name} has no end`)
		const isLeaf = level === tree.depth
		const nodes = file.nodes(page, slot + level, isLeaf ? pageKind.leaf : pageKind.branch)
		if (isLeaf) leaves++
		else branches++
		for (const [index, node] of nodes.entries()) {
			// A branch's first key is empty: its child holds whatever is below the second.
			const key = isLeaf || index > 0 ? node.key : low
			if (key && ((low && order(key, low) < 0) || (high && order(key, high) >= 0)))
				throw new Damage(`page ${page} has a key where it cannot be found`)
			if (!isLeaf) {
				// What is newest is at the end of most tables.
				const isEnd = index === 0 || index === nodes.length - 1
				if (scope.wants(isEnd)) descend(node.child, level + 1, key, nodes[index + 1]?.key ?? high)
				continue
			}
			if (last && order(node.key, last) <= 0) throw new Damage(`page ${page} has keys out of order`)
			last = scratch.subarray(0, node.key.copy(scratch))
			entries++
			visit(node)
		}
	}

	if (tree.root !== null) descend(tree.root, 1, undefined, undefined)
	if (!scope.complete) return
	if (entries !== tree.entries) throw new Damage(`${name} should have ${tree.entries} entries and has ${entries}`)
	const overflows = file.overflows - overflowsBefore
	if (slot > 0 && (branches !== tree.branches || leaves !== tree.leaves || overflows !== tree.overflows))
		throw new Damage(`${name} has not the pages that it should have`)
}

function checkRecord(table: string, key: string, value: Buffer): void {
	const isSealed = sealedTables.includes(table)
	if (isSealed ? isIntact(key, value) : value.length === 0) return
	throw new Damage(`the record ${JSON.stringify(key.split('\0'))} (table ${table}) is damaged`)
}

/** The free pages' tree has transaction numbers as keys. */
function orderOfNumbers(a: Buffer, b: Buffer): number {
	if (a.length !== 8 || b.length !== 8) throw new Damage('its list of free pages has a key that is none')
	return wide(a, 0) - wide(b, 0)
}

/** A list of free pages: its length, then page numbers; a negative number is the length of the block that follows. */
function freePages(list: Buffer, file: PageFile): number[] {
	const length = list.length >= 8 ? wide(list, 0) : -1
	if (length < 0 || 8 * (length + 1) > list.length) throw new Damage('its list of free pages is longer than its place')
	const pages: number[] = []
	for (let i = 1; i <= length; i++) {
		const entry = Number(list.readBigInt64LE(8 * i))
		if (entry === 0) continue
		const count = entry < 0 ? -entry : 1
		const first = entry > 0 ? entry : i < length ? Number(list.readBigInt64LE(8 * ++i)) : 0
		if (!file.exists(first) || !file.exists(first + count - 1))
			throw new Damage(`its list of free pages has one that does not exist, ${first}`)
		for (let page = first; page < first + count; page++) pages.push(page)
	}
	return pages
}
