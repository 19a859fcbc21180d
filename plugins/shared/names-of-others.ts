import type { Key, Store } from '../../core/store/ports.ts'

/** The end of a message about a missing thing: the names of those that the agent has, at most 20, from their keys. */
export async function namesOfOthers(store: Store, prefix: Key): Promise<string> {
	const names: string[] = []
	for await (const key of store.keys(prefix, { limit: 20 })) names.push(key.at(-1) ?? '')
	return names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`
}
