import type { Key, Store } from '../../core/store/ports.ts'

/** What an agent has in place of a thing that it does not have, as the end of a message: at most 20 names, from the keys. */
export async function namesOfOthers(store: Store, prefix: Key): Promise<string> {
	const names: string[] = []
	for await (const key of store.keys(prefix, { limit: 20 })) names.push(key.at(-1) ?? '')
	return names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`
}
