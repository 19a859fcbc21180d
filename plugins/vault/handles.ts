/** Handles, `{{secret:NAME}}`: placeholders for a secret's value until a call is sent. */
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
 * Replaces handles by `values` in all strings of plain data, not in its keys. Handles inside a value are not
 * replaced. `only`: handles of other names stay. Throws `invalid_arguments` for too many different
 * handles or too large values.
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
			`these arguments name ${names.length} secrets; at most ${NAME_LIMIT} are filled in`,
		)
	const values = new Map<string, string>()
	for (const name of names) values.set(name, await valueOf(name))
	let filled = 0
	return walk(data, (text) =>
		text.replace(HANDLE, (handle, name: string) => {
			const value = values.get(name) ?? handle
			filled += value.length
			if (filled > FILL_LIMIT)
				throw new Fault('invalid_arguments', 'the secrets in these arguments add up to more than 1 MiB')
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

/** A copy with every string changed. Other values than plain data stay as they are. */
function walk(value: unknown, change: (text: string) => string, depth = 0): unknown {
	if (typeof value === 'string') return change(value)
	if (typeof value !== 'object' || value === null) return value
	if (depth > DEPTH_LIMIT)
		throw new Fault('invalid_arguments', `these arguments are nested more than ${DEPTH_LIMIT} levels deep`)
	if (Array.isArray(value)) return value.map((item) => walk(item, change, depth + 1))
	const prototype: unknown = Object.getPrototypeOf(value)
	if (prototype !== Object.prototype && prototype !== null) return value
	// Defines each key, so that one called __proto__ is a key like any other.
	return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, walk(item, change, depth + 1)]))
}
