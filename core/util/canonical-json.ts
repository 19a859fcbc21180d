import { isObject } from './is-object.ts'

/** JSON with sorted keys: the same text for the same data, whatever the order of its keys. */
export function canonicalJson(value: unknown): string {
	return JSON.stringify(value, (_key, item: unknown) =>
		isObject(item) ? Object.fromEntries(Object.entries(item).toSorted(([a], [b]) => (a < b ? -1 : 1))) : item,
	)
}
