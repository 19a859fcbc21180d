/** The depth to which data is walked; deeper data is redacted as its JSON text. */
const DEPTH = 200
/** Replaces data that cannot be read, and therefore cannot be searched. */
const UNREADABLE = '[unreadable]'

/**
 * Plain data with `change` applied to every string in it, keys too; the same object if nothing changed. Byte arrays stay
 * as they are. An object with a `toJSON` is replaced by its result. Data that cannot be walked, such as a cycle, a getter that
 * throws, a Map or a function, is replaced by `[unreadable]`.
 */
export function mapStrings<T>(value: T, change: StringChange): T {
	return walk(value, change, []) as T
}

type StringChange = (text: string) => string

/** `above`: the objects that contain this one. */
function walk(value: unknown, change: StringChange, above: object[]): unknown {
	if (typeof value === 'string') return change(value)
	if (typeof value === 'function') return UNREADABLE
	if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
	if (above.includes(value)) return UNREADABLE
	above.push(value)
	try {
		if (above.length > DEPTH) return deeper(value, change)
		if ('toJSON' in value && typeof value.toJSON === 'function') {
			const plain: unknown = value.toJSON()
			const changed = walk(plain, change, above)
			return changed === plain ? value : changed
		}
		if (Array.isArray(value)) {
			const items = value.map((item) => walk(item, change, above))
			return items.some((item, at) => item !== value[at]) ? items : value
		}
		return isPlain(value) ? walkObject(value, change, above) : UNREADABLE
	} catch {
		return UNREADABLE
	} finally {
		above.pop()
	}
}

/** Instances of other classes are walked too, such as errors: only their own fields reach a store or a client. */
function isPlain(value: object): boolean {
	return !(value instanceof Map || value instanceof Set || value instanceof ArrayBuffer || ArrayBuffer.isView(value))
}

function walkObject(object: object, change: StringChange, above: object[]): object {
	let isSame = true
	const names = Object.keys(object)
	// Everything that is stored passes here, and nearly all of it unchanged: so this allocates little. A copy need not grow.
	const items: unknown[] = [...names]
	for (let at = 0; at < names.length; at++) {
		const name = names[at] as string
		const item = (object as Record<string, unknown>)[name]
		const shown = change(name)
		const changed = walk(item, change, above)
		isSame &&= shown === name && changed === item
		names[at] = shown
		items[at] = changed
	}
	return isSame ? object : withUniqueNames(names, items)
}

/** Two names may have become one. */
function withUniqueNames(names: readonly string[], items: readonly unknown[]): object {
	const taken = new Map<string, unknown>()
	for (const [at, name] of names.entries()) {
		let unique = name
		while (taken.has(unique)) unique += "'"
		taken.set(unique, items[at])
	}
	return Object.fromEntries(taken)
}

function deeper(value: object, change: StringChange): unknown {
	const text = JSON.stringify(value)
	const changed = change(text)
	return changed === text ? value : JSON.parse(changed)
}
