/** The depth to which data is walked; deeper data is redacted as its JSON text. */
const DEPTH = 200
/** Replaces data that cannot be read, and therefore cannot be searched. */
const UNREADABLE = '[unreadable]'

/** Replacements for the parts of data that can contain a secret. */
export interface Changes {
	text(text: string): string
	/** Called for numbers with eight or more digits, or a fraction. Absent: numbers stay as they are. */
	number?(value: number): unknown
}

/**
 * Plain data with `change` applied to every string in it, keys too, and to long numbers; the same object if nothing changed. Byte
 * arrays stay as they are. An object with a `toJSON` is replaced by its result. Data that cannot be walked, such as a cycle, a getter that
 * throws, a Map or a function, is replaced by `[unreadable]`.
 */
export function mapData<T>(value: T, change: Changes): T {
	return walk(value, change, []) as T
}

/** `above`: the objects that contain this one. */
function walk(value: unknown, change: Changes, above: object[]): unknown {
	if (typeof value === 'string') return change.text(value)
	if (typeof value === 'number') return isLong(value) && change.number ? change.number(value) : value
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
		if (Array.isArray(value)) return walkList(value, change, above)
		return isPlain(value) ? walkObject(value, change, above) : UNREADABLE
	} catch {
		return UNREADABLE
	} finally {
		above.pop()
	}
}

/** Instances of other classes, such as errors, are walked too: only their own fields reach a store or a client. */
function isPlain(value: object): boolean {
	return !(value instanceof Map || value instanceof Set || value instanceof ArrayBuffer || ArrayBuffer.isView(value))
}

// All stored data passes here, nearly always unchanged. So the functions that are called for each value create no closures, which
// would allocate memory, and an object is copied only if something changes.

function walkList(list: readonly unknown[], change: Changes, above: object[]): readonly unknown[] {
	const items: unknown[] = []
	let isSame = true
	for (let at = 0; at < list.length; at++) {
		const item = list[at]
		const changed = walk(item, change, above)
		isSame &&= changed === item
		items.push(changed)
	}
	return isSame ? list : items
}

function walkObject(object: object, change: Changes, above: object[]): object {
	const names = Object.keys(object)
	let copy: Map<string, unknown> | undefined
	for (let at = 0; at < names.length; at++) {
		const name = names[at] as string
		const item = (object as Record<string, unknown>)[name]
		const shown = change.text(name)
		const changed = walk(item, change, above)
		if (shown !== name || changed !== item) copy ??= beginningOf(object, names.slice(0, at), change, above)
		if (copy) setUnique(copy, shown, changed)
	}
	return copy ? Object.fromEntries(copy) : object
}

/** The first fields of an object, which were unchanged. They are walked again, since a getter may return something else. */
function beginningOf(object: object, names: readonly string[], change: Changes, above: object[]): Map<string, unknown> {
	return new Map(names.map((name) => [name, walk((object as Record<string, unknown>)[name], change, above)]))
}

/** Redaction may have made two names equal. */
function setUnique(fields: Map<string, unknown>, name: string, value: unknown): void {
	while (fields.has(name)) name += "'"
	fields.set(name, value)
}

function deeper(value: object, change: Changes): unknown {
	const text = JSON.stringify(value)
	const changed = change.text(text)
	return changed === text ? value : JSON.parse(changed)
}

/** Nearly all numbers in records are shorter. */
function isLong(value: number): boolean {
	return Math.abs(value) >= 10_000_000 || !Number.isInteger(value)
}
