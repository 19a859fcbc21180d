/** Empties a vault whose master key is lost. */
import type { Store } from '../../core/store/ports.ts'
import { deleteAll } from '../shared/delete-all.ts'
import { SCOPE, keys } from './keys.ts'

/** Deletes every record of the vault. Returns the number of secrets. */
export async function emptyVault(store: Store): Promise<number> {
	let count = 0
	for await (const _ of store.list(keys.secrets)) count++
	await deleteAll(store, [SCOPE], ({ key }) => key.join() !== keys.state.join())
	// The state is deleted last: after an interruption the vault is still locked, and the reset can be repeated.
	await store.commit(SCOPE, [{ key: keys.state, value: undefined }])
	return count
}
