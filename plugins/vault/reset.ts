/** Empties a vault that no key opens any more. */
import type { Op, Store } from '../../core/store/ports.ts'
import { SCOPE, keys } from './keys.ts'

const COMMIT_LIMIT = 100

/** Deletes every record of the vault. Returns the number of secrets. */
export async function deleteAll(store: Store): Promise<number> {
	let count = 0
	for await (const _ of store.list(keys.secrets)) count++
	let ops: Op[] = []
	for await (const { key } of store.list([SCOPE])) {
		if (key.join() === keys.state.join()) continue
		if (ops.push({ key, value: undefined }) < COMMIT_LIMIT) continue
		await store.commit(SCOPE, ops)
		ops = []
	}
	// The state goes last: if this is interrupted, the vault stays locked, and it can be done again.
	await store.commit(SCOPE, [...ops, { key: keys.state, value: undefined }])
	return count
}
