/**
 * Patterns in a radix tree: what patterns begin with alike is there once, so that a text is compared with all of them in
 * the time that one takes.
 */
export interface Node {
	/** What comes between its parent and it. Empty for the root only. */
	label: string
	/** Of the patterns that end here, in the order in which they were added. */
	readonly owners: string[]
	/** By the first unit of their labels. A leaf has none. */
	children: Map<number, Node> | null
}

export class Tree {
	readonly root: Node = { label: '', owners: [], children: null }

	add(pattern: string, owner: string): void {
		let node = this.root
		for (let at = 0; at < pattern.length;) {
			const rest = pattern.slice(at)
			const children = (node.children ??= new Map())
			const child = children.get(rest.charCodeAt(0))
			if (!child) {
				// Made with its owner: a list that grows from nothing takes room for sixteen.
				children.set(rest.charCodeAt(0), { label: rest, owners: [owner], children: null })
				return
			}
			const common = commonLength(child.label, rest)
			node = common < child.label.length ? split(node, child, common) : child
			at += common
		}
		node.owners.push(owner)
	}

	/** Undoes one `add` of the same; false where there was none. */
	remove(pattern: string, owner: string): boolean {
		const path = [this.root]
		let node = this.root
		for (let at = 0; at < pattern.length; at += node.label.length) {
			const child = node.children?.get(pattern.charCodeAt(at))
			if (!child || !pattern.startsWith(child.label, at)) return false
			path.push(child)
			node = child
		}
		const index = node.owners.indexOf(owner)
		if (index < 0) return false
		node.owners.splice(index, 1)
		const parent = path.at(-2)
		const grandparent = path.at(-3)
		if (parent) tidy(parent, node)
		if (parent && grandparent) tidy(grandparent, parent)
		return true
	}

	/** What patterns begin with, to that length, each beginning once; shorter patterns as a whole. */
	*beginnings(length: number, node = this.root, before = ''): Generator<string> {
		const text = before + node.label
		if (text.length >= length || node.owners.length > 0) yield text.slice(0, length)
		if (text.length >= length) return
		for (const child of node.children?.values() ?? []) yield* this.beginnings(length, child, text)
	}
}

/** Of a pattern that ends at that node or below; undefined where `except` has all of them. */
export function ownerUnder(node: Node, except: ReadonlySet<string> | undefined): string | undefined {
	const nodes = [node]
	for (let next = nodes.pop(); next; next = nodes.pop()) {
		const owner = ownerAt(next, except)
		if (owner !== undefined) return owner
		if (next.children) nodes.push(...next.children.values())
	}
	return undefined
}

export function ownerAt(node: Node, except: ReadonlySet<string> | undefined): string | undefined {
	return except ? node.owners.find((owner) => !except.has(owner)) : node.owners[0]
}

/** Puts a node into the middle of the child's label. */
function split(parent: Node, child: Node, at: number): Node {
	const middle: Node = { label: child.label.slice(0, at), owners: [], children: null }
	child.label = child.label.slice(at)
	middle.children = new Map([[child.label.charCodeAt(0), child]])
	parent.children?.set(middle.label.charCodeAt(0), middle)
	return middle
}

/** A node that nothing ends at has two children at least. */
function tidy(parent: Node, node: Node): void {
	if (node.owners.length > 0 || (node.children?.size ?? 0) > 1) return
	const [only] = node.children?.values() ?? []
	if (only) {
		only.label = node.label + only.label
		parent.children?.set(only.label.charCodeAt(0), only)
	} else {
		parent.children?.delete(node.label.charCodeAt(0))
		if (parent.children?.size === 0) parent.children = null
	}
}

function commonLength(one: string, other: string): number {
	const most = Math.min(one.length, other.length)
	let at = 0
	while (at < most && one.charCodeAt(at) === other.charCodeAt(at)) at++
	return at
}
