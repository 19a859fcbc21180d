/**
 * The keys of an unlocked vault: the master key, which is not in the store, and two internal keys, which are stored encrypted with
 * the master key. A change of the master key does not change the internal keys. So the index of names and the data that other
 * plugins encrypted stay valid.
 */
import type { KeyObject } from 'node:crypto'
import { Fault } from '../../core/errors.ts'
import { now } from '../../core/util/ids.ts'
import type { Entry, Op, Store } from '../../core/store/ports.ts'
import { newKey, unwrap, wrap } from './cipher.ts'
import { keys } from './keys.ts'
import { ifLost } from './master-key.ts'
import type { KeySource, MasterKey } from './master-key.ts'

/** How the vault is encrypted. */
export interface VaultState {
	/** The master key that encrypts new data keys. */
	key_id: string
	/** The internal keys, encrypted with each master key; with two while the master key is changed. */
	own_keys: Record<string, { index: Uint8Array; sealing: Uint8Array }>
	created_at: string
}

export interface Keyring {
	/** Key for the index of names and the marks of grants. */
	readonly index: KeyObject
	/** Key for data that other plugins sealed, and for earlier values of secrets. */
	readonly sealing: KeyObject
	/** Undefined if the key with this id is not available. */
	master(id: string): KeyObject | undefined
	add(master: MasterKey): void
	state(): Promise<Entry<VaultState>>
}

/** Creates the vault's state if there is none. Throws `vault_locked` if the state was encrypted with another key. */
export async function openKeyring(store: Store, source: KeySource): Promise<Keyring> {
	const { wanted, earlier } = source
	if (!(await store.get(keys.state))) await store.create(keys.state, newState(wanted))
	const state = async (): Promise<Entry<VaultState>> => {
		const entry = await store.get<VaultState>(keys.state)
		if (!entry) throw new Fault('vault_locked', 'the state of the vault is missing from the store; restore a backup')
		return entry
	}
	const { own_keys } = (await state()).value
	const masters = new Map([earlier, wanted].flatMap((master) => (master ? [[master.id, master.key]] : [])))
	const matching = [wanted, earlier].find((master) => master && Object.hasOwn(own_keys, master.id))
	if (!matching) {
		throw new Fault(
			'vault_locked',
			`the vault was encrypted with a different key than that in ${source.name}; restore the right key. To change to this key, set SVC_VAULT_KEY to it and SVC_VAULT_KEY_OLD to the earlier key, and start the gateway again; ${ifLost}`,
		)
	}
	const own = unwrapOwn(matching, own_keys)
	if (!own) {
		throw new Fault(
			'vault_locked',
			`${source.name} contains the key of this vault, but the record of the vault's internal keys was changed or is damaged; restore a backup of the data; without one, svc vault reset deletes all secrets and grants`,
		)
	}
	return {
		...own,
		state,
		add: ({ id, key }) => void masters.set(id, key),
		master: (id) => masters.get(id),
	}
}

/** Add this to a commit that stores an encrypted key: the commit fails if the master key was changed since `state` was read. */
export function guard(state: Entry<VaultState>): Op {
	return { key: keys.state, check: true, expect: state.rev }
}

export function wrapOwn(
	{ id, key }: MasterKey,
	{ index, sealing }: Pick<Keyring, 'index' | 'sealing'>,
): VaultState['own_keys'][string] {
	return { index: wrap(key, index, ['index key', id]), sealing: wrap(key, sealing, ['sealing key', id]) }
}

function unwrapOwn({ id, key }: MasterKey, own_keys: VaultState['own_keys']) {
	const own = own_keys[id]
	const index = own && unwrap(key, own.index, ['index key', id])
	const sealing = own && unwrap(key, own.sealing, ['sealing key', id])
	return index && sealing && { index, sealing }
}

function newState(master: MasterKey): VaultState {
	const own = wrapOwn(master, { index: newKey(), sealing: newKey() })
	return { key_id: master.id, own_keys: { [master.id]: own }, created_at: now() }
}
