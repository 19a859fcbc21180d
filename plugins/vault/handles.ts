/** Handles, `{{secret:NAME}}`: what stands for a secret's value until a call goes out. */
import { Fault } from '../../core/errors.ts'

/** What a secret may be called. */
export const NAME = /^[A-Za-z0-9_.-]{1,128}$/
const HANDLE = /\{\{secret:([A-Za-z0-9_.-]{1,128})\}\}/g

const DEPTH_LIMIT = 200
const NAME_LIMIT = 100
/** Characters of values that may be put into one piece of data. */
const FILL_LIMIT = 1024 * 1024

export function handleOf(name: string): string {
	return `{{secret:${name}}}`
}

/**
 * Puts `values` in the place of the handles in all strings of plain data, not in its keys. What stands in a value is not
 * looked at again. Throws `invalid_arguments` where there are too many different handles or too much is to be filled in.
 */
export async function fillHandles<T>(data: T, valueOf: (name: string) => Promise<string>): Promise<T> {
	const names = new Set<string>()
	walk(data, (text) => {
		for (const [, name] of text.matchAll(HANDLE)) names.add(name as string)
		return text
	})
	if (names.size === 0) return data
	if (names.size > NAME_LIMIT)
		throw new Fault(
			'invalid_arguments',
			`these arguments name ${names.size} secrets; at most ${NAME_LIMIT} are filled in`,
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

/** A copy with every string changed. What is no plain data stays as it is. */
function walk(value: unknown, change: (text: string) => string, depth = 0): unknown {
	if (typeof value === 'string') return change(value)
	if (typeof value !== 'object' || value === null) return value
	if (depth > DEPTH_LIMIT)
		throw new Fault('invalid_arguments', `these arguments are nested more than ${DEPTH_LIMIT} levels deep`)
	if (Array.isArray(value)) return value.map((item) => walk(item, change, depth + 1))
	const prototype: unknown = Object.getPrototypeOf(value)
	if (prototype !== Object.prototype && prototype !== null) return value
	// Defines each key anew, so that one called __proto__ is a key like any other.
	return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, walk(item, change, depth + 1)]))
}
