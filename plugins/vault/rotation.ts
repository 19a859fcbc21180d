/**
 * Changes the master key: encrypts every data key again, without changing the values.
 *
 * 1. Stores the internal keys encrypted with both master keys. From now on, the new master key encrypts new data keys.
 * 2. Encrypts the data keys of the secrets again, up to 100 in one commit.
 * 3. Stores the internal keys encrypted with the new master key only.
 * 4. Deletes the earlier master key.
 *
 * Each record names its master key, and both are available until the end. So every secret can be read at any time, and the next
 * start resumes an interrupted change.
 */
import { isFault } from '../../core/errors.ts'
import { change } from '../../core/store/change.ts'
import type { Op, Store } from '../../core/store/ports.ts'
import { SCOPE, keys } from './keys.ts'
import { wrapOwn } from './keyring.ts'
import type { Keyring, VaultState } from './keyring.ts'
import type { KeySource, MasterKey } from './master-key.ts'
import { rewrapped } from './secret-record.ts'
import type { SecretRecord } from './secret-record.ts'

const COMMIT_LIMIT = 100

/** Encrypts all keys with the desired master key; does nothing if that is already done. Returns the number of changed secrets. */
export async function rewrapKeys(source: KeySource, store: Store, ring: Keyring): Promise<number> {
	const { wanted } = source
	ring.add(wanted)
	const { own_keys } = (await ring.state()).value
	if (Object.keys(own_keys).join() === wanted.id) {
		source.settle()
		return 0
	}
	const own = wrapOwn(wanted, ring)
	await changeState(store, ring, (state) => ({
		...state,
		key_id: wanted.id,
		own_keys: { ...state.own_keys, [wanted.id]: own },
	}))
	const count = await rewrapAll(store, ring, wanted)
	await changeState(store, ring, (state) => ({ ...state, own_keys: { [wanted.id]: own } }))
	source.settle()
	return count
}

function changeState(store: Store, ring: Keyring, next: (state: VaultState) => VaultState): Promise<void> {
	return change(store, SCOPE, async () => {
		const { key, value, rev } = await ring.state()
		return { ops: [{ key, value: next(value), expect: rev }], result: undefined }
	})
}

/** Repeats the pass over the secrets after a conflict, since data may change during a pass. */
async function rewrapAll(store: Store, ring: Keyring, master: MasterKey): Promise<number> {
	let count = 0
	for (let hadConflict = true; hadConflict;) {
		hadConflict = false
		let ops: Op[] = []
		const flush = async (): Promise<void> => {
			try {
				if (ops.length > 0) await store.commit(SCOPE, ops)
				count += ops.length
			} catch (error) {
				if (!isFault(error, 'conflict')) throw error
				hadConflict = true
			}
			ops = []
		}
		for await (const entry of store.list<SecretRecord>(keys.secrets)) {
			if (entry.value.key_id === master.id) continue
			const { key, value, rev } = entry
			// No key decrypts a damaged record, which must not block the others.
			const changed = rewrapped(key.at(-1) as string, value, ring, master)
			if (changed) ops.push({ key, value: changed, expect: rev })
			if (ops.length === COMMIT_LIMIT) await flush()
		}
		await flush()
	}
	return count
}
