/** Handles, `{{secret:NAME}}`: placeholders that are replaced by the values of secrets when a call is sent. */
import { Fault } from '../../core/errors.ts'

/** The form of a secret's name. */
export const NAME = /^[A-Za-z0-9_.-]{1,128}$/
const HANDLE = /\{\{secret:([A-Za-z0-9_.-]{1,128})\}\}/g

const DEPTH_LIMIT = 200
const NAME_LIMIT = 100
/** Limit of the characters of values that are inserted into one object. */
const FILL_LIMIT = 1024 * 1024

export function handleOf(name: string): string {
	return `{{secret:${name}}}`
}

/**
 * Replaces handles by values in all strings of plain data, not in its keys. Handles inside a value are not replaced. `only`:
 * handles of other names stay. Throws `invalid_arguments` above 100 different handles, 1 MiB of values or 200 levels.
 */
export async function fillHandles<T>(
	data: T,
	valueOf: (name: string) => Promise<string>,
	only?: ReadonlySet<string>,
): Promise<T> {
	const names = namesIn(data).filter((name) => only?.has(name) ?? true)
	if (names.length === 0) return data
	if (names.length > NAME_LIMIT)
		throw new Fault(
			'invalid_arguments',
			`these arguments contain ${names.length} different secrets; at most ${NAME_LIMIT} are allowed`,
		)
	const values = new Map<string, string>()
	for (const name of names) values.set(name, await valueOf(name))
	let filled = 0
	return walk(data, (text) =>
		text.replace(HANDLE, (handle, name: string) => {
			const value = values.get(name) ?? handle
			filled += value.length
			if (filled > FILL_LIMIT)
				throw new Fault(
					'invalid_arguments',
					'the values of the secrets in these arguments have more than 1 MiB together',
				)
			return value
		}),
	) as T
}

/** The names in the handles of plain data, each once. */
export function namesIn(data: unknown): string[] {
	const names = new Set<string>()
	walk(data, (text) => {
		for (const [, name = ''] of text.matchAll(HANDLE)) names.add(name)
		return text
	})
	return [...names]
}

/** Returns a copy with every string changed. Values that are not plain data are not copied. */
function walk(value: unknown, change: (text: string) => string, depth = 0): unknown {
	if (typeof value === 'string') return change(value)
	if (typeof value !== 'object' || value === null) return value
	if (depth > DEPTH_LIMIT)
		throw new Fault('invalid_arguments', `these arguments are nested more than ${DEPTH_LIMIT} levels deep`)
	if (Array.isArray(value)) return value.map((item) => walk(item, change, depth + 1))
	const prototype: unknown = Object.getPrototypeOf(value)
	if (prototype !== Object.prototype && prototype !== null) return value
	// `fromEntries` defines the keys, so that `__proto__` is an ordinary key.
	return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, walk(item, change, depth + 1)]))
}
