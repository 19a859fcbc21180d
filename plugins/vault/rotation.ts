/**
 * Changing the master key: every data key is wrapped anew, the values stay as they are.
 *
 * 1. The vault's own keys stand under both master keys, and what is new is wrapped under the wanted one.
 * 2. The secrets, up to 100 in one commit.
 * 3. The vault's own keys stand under the wanted one alone.
 * 4. The earlier key goes.
 *
 * Each record names its key, and both are there until the end: so every secret can be read at any time, and where this
 * breaks off, the next start goes on with it.
 */
import { isFault } from '../../core/errors.ts'
import type { Op, Store } from '../../core/store/ports.ts'
import { SCOPE, keys } from './keys.ts'
import { wrapOwn } from './keyring.ts'
import type { Keyring, VaultState } from './keyring.ts'
import type { KeySource, MasterKey } from './master-key.ts'
import { rewrapped } from './secret-record.ts'
import type { SecretRecord } from './secret-record.ts'

const COMMIT_LIMIT = 100

/** Brings everything under the wanted key; does nothing where it is already. Answers how many secrets were wrapped anew. */
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

async function changeState(store: Store, ring: Keyring, change: (state: VaultState) => VaultState): Promise<void> {
	for (;;) {
		const { value, rev } = await ring.state()
		try {
			return void (await store.update(keys.state, change(value), rev))
		} catch (error) {
			if (!isFault(error, 'conflict')) throw error // a secret was stored meanwhile
		}
	}
}

/** Passes through the secrets until one finds none that is left: what is read for the first time changes meanwhile. */
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
			// A damaged record opens with no key, and must not keep the rest from going on.
			const changed = rewrapped(key.at(-1) as string, value, ring, master)
			if (changed) ops.push({ key, value: changed, expect: rev })
			if (ops.length === COMMIT_LIMIT) await flush()
		}
		await flush()
	}
	return count
}
