/**
 * The pages of an LMDB data file of format 2, as lmdb-js writes it (the header files are in its package, under
 * dependencies/lmdb/libraries/liblmdb). All numbers are little-endian.
 *
 *     page header   number u64 · transaction u64 · pad u16 · flags u16 · lower u16 · upper u16
 *                   (of overflow pages the last two are their count, u32)
 *     node          low u16 · high u16 · flags u16 · key's size u16 · key · data
 *                   (in a branch the first three are the child's page number, in a leaf the data's size and its flags)
 *     tree          pad u32 · flags u16 · depth u16 · branch, leaf, overflow pages, entries, root page: u64 each
 *     meta          magic u32 · version u32 · address u64 · map size u64 · free pages' tree · main tree · last page u64 ·
 *                   transaction u64
 */
export const headerSize: number = 24
const nodeHeaderSize = 8

export const pageKind = { branch: 1, leaf: 2, overflow: 4, meta: 8 } as const
const nodeFlag = { big: 1, tree: 2 } as const
const treeSize = 48
/** The root of a tree without entries. */
const noPage = 0xffff_ffff_ffff_ffffn
const magic = 0xbeefc0de
const formatVersion = 2

export interface Tree {
	/** How its keys are compared; 0 for plain bytes. */
	flags: number
	depth: number
	branches: number
	leaves: number
	overflows: number
	entries: number
	/** Null where it is empty. */
	root: number | null
}

export interface Meta {
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

/** What is wrong with a data file, in words that end a sentence about it. */
export class Damage extends Error {}

export function readMeta(page: Buffer, number: number): Meta {
	const isMeta = wide(page, 0) === number && page.readUInt16LE(18) === pageKind.meta
	if (!isMeta || page.readUInt32LE(headerSize) !== magic || page.readUInt32LE(headerSize + 4) !== formatVersion)
		throw new Damage(`its head (page ${number}) is none of LMDB's`)
	return {
		pageSize: page.readUInt32LE(48),
		free: readTree(page, 48),
		main: readTree(page, 96),
		lastPage: wide(page, 144),
		transaction: wide(page, 152),
	}
}

export function readTree(bytes: Buffer, at: number): Tree {
	const root = bytes.readBigUInt64LE(at + 40)
	return {
		flags: bytes.readUInt16LE(at + 4),
		depth: bytes.readUInt16LE(at + 6),
		branches: wide(bytes, at + 8),
		leaves: wide(bytes, at + 16),
		overflows: wide(bytes, at + 24),
		entries: wide(bytes, at + 32),
		root: root === noPage ? null : Number(root),
	}
}

/** The nodes of a branch or a leaf. */
export function readNodes(page: Buffer, kind: number, number: number): Node[] {
	const lower = page.readUInt16LE(20)
	const upper = page.readUInt16LE(22)
	const room = page.length - headerSize
	if (lower > upper || upper > room || lower % 2 !== 0) throw new Damage(`page ${number} has impossible bounds`)
	const nodes: Node[] = []
	for (let i = 0; i < lower / 2; i++) {
		const at = page.readUInt16LE(headerSize + 2 * i)
		if (at < upper || at + nodeHeaderSize > room) throw new Damage(`page ${number} has an entry outside of itself`)
		nodes.push(readNode(page, headerSize + at, kind, number))
	}
	return nodes
}

function readNode(page: Buffer, at: number, kind: number, number: number): Node {
	const low = page.readUInt32LE(at)
	const flags = page.readUInt16LE(at + 4)
	const keyEnd = at + nodeHeaderSize + page.readUInt16LE(at + 6)
	const isLeaf = kind === pageKind.leaf
	const inline = isLeaf && !(flags & nodeFlag.big) ? low : isLeaf ? nodeHeaderSize * 3 : 0
	if (keyEnd + inline > page.length) throw new Damage(`page ${number} has an entry that goes beyond its end`)
	return {
		key: page.subarray(at + nodeHeaderSize, keyEnd),
		child: isLeaf ? 0 : low + flags * 2 ** 32,
		flags: isLeaf ? flags : 0,
		data: page.subarray(keyEnd, keyEnd + inline),
		size: isLeaf ? low : 0,
	}
}

/** Whether the node's data lies on overflow pages. */
export function isBig(node: Node): boolean {
	return (node.flags & nodeFlag.big) !== 0
}

/** Whether the node's data is a tree of its own. */
export function isTree(node: Node): boolean {
	return (node.flags & nodeFlag.tree) !== 0 && node.data.length === treeSize
}

/** A 64-bit number. One above 2^53 is no longer exact, but then it is wrong anyhow. */
export function wide(bytes: Buffer, at: number): number {
	return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32
}
