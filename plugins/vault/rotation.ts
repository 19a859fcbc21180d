/**
 * Changing the master key: every data key is wrapped again, the values stay as they are.
 *
 * 1. The vault's own keys are stored under both master keys, and new data is wrapped under the desired one.
 * 2. The secrets, up to 100 in one commit.
 * 3. The vault's own keys are stored under the desired one only.
 * 4. The earlier key is deleted.
 *
 * Each record names its key, and both are available until the end: so every secret can be read at any time, and if this
 * is interrupted, the next start resumes it.
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

/** Wraps everything under the desired key; does nothing if that is done. Returns the number of secrets wrapped again. */
export async function bringUnder(source: KeySource, store: Store, ring: Keyring): Promise<number> {
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

/** Passes through the secrets until a pass finds none to wrap: data may change during a pass. */
async function rewrapAll(store: Store, ring: Keyring, master: MasterKey): Promise<number> {
	let count = 0
	for (let left = true; left;) {
		left = false
		let ops: Op[] = []
		const flush = async (): Promise<void> => {
			try {
				if (ops.length > 0) await store.commit(SCOPE, ops)
				count += ops.length
			} catch (error) {
				if (!isFault(error, 'conflict')) throw error
				left = true
			}
			ops = []
		}
		for await (const entry of store.list<SecretRecord>(keys.secrets)) {
			if (entry.value.key_id === master.id) continue
			const { key, value, rev } = entry
			// A damaged record opens with no key, and must not block the rest.
			const changed = rewrapped(key.at(-1) as string, value, ring, master)
			if (changed) ops.push({ key, value: changed, expect: rev })
			if (ops.length === COMMIT_LIMIT) await flush()
		}
		await flush()
	}
	return count
}
