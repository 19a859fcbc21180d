/** Levels that are walked; what lies deeper goes by its JSON text. */
const DEPTH = 200

/**
 * Plain data with `change` applied to every string in it, keys too; the same object where nothing changed. Byte arrays stay
 * as they are. What has a `toJSON` counts as what that answers. What cannot be read stays too: nobody can write it either.
 */
export function mapStrings<T>(value: T, change: (text: string) => string): T {
	try {
		return walk(value, change, 0) as T
	} catch {
		return value
	}
}

function walk(value: unknown, change: (text: string) => string, depth: number): unknown {
	if (typeof value === 'string') return change(value)
	if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
	if (depth === DEPTH) return asText(value, change)
	if ('toJSON' in value && typeof value.toJSON === 'function') {
		const plain: unknown = value.toJSON()
		const changed = walk(plain, change, depth + 1)
		return changed === plain ? value : changed
	}
	return Array.isArray(value) ? walkArray(value, change, depth) : walkObject(value, change, depth)
}

function walkArray(list: unknown[], change: (text: string) => string, depth: number): unknown[] {
	let copy: unknown[] | undefined
	for (const [at, item] of list.entries()) {
		const changed = walk(item, change, depth + 1)
		if (changed !== item) (copy ??= [...list])[at] = changed
	}
	return copy ?? list
}

function walkObject(object: object, change: (text: string) => string, depth: number): object {
	const fields = object as Record<string, unknown>
	const names = Object.keys(fields)
	let copy: [string, unknown][] | undefined
	for (let at = 0; at < names.length; at++) {
		const name = names[at] as string
		const item = fields[name]
		const newName = change(name)
		const newItem = walk(item, change, depth + 1)
		if (newName !== name || newItem !== item) copy ??= names.slice(0, at).map((one) => [one, fields[one]])
		copy?.push([newName, newItem])
	}
	return copy ? Object.fromEntries(withUniqueNames(copy)) : object
}

/** Two names may have become one. */
function withUniqueNames(entries: [string, unknown][]): [string, unknown][] {
	const taken = new Set<string>()
	return entries.map(([name, item]) => {
		let unique = name
		while (taken.has(unique)) unique += "'"
		taken.add(unique)
		return [unique, item]
	})
}

function asText(value: object, change: (text: string) => string): unknown {
	// Throws for what is no JSON, such as a circle.
	const text = JSON.stringify(value)
	const changed = change(text)
	return changed === text ? value : JSON.parse(changed)
}
