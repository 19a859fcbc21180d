/**
 * The stored form of a secret. Each version of the value has its own data key, encrypted with the master key. Encrypted data is
 * bound to the secret's id and version, so that records or parts of them cannot be swapped.
 */
import type { KeyObject } from 'node:crypto'
import { Fault } from '../../core/errors.ts'
import { mac, newKey, seal, unseal, unwrap, wrap } from './cipher.ts'
import type { Secret } from './contract.ts'
import type { Keyring } from './keyring.ts'
import type { MasterKey } from './master-key.ts'

export interface SecretRecord {
	/** Incremented with each new value. */
	version: number
	/** The master key that encrypts the data key. */
	key_id: string
	data_key: Uint8Array
	/** `AboutSecret`, encrypted. */
	about: Uint8Array
	/** The key of the name in the index. */
	name_hash: Uint8Array
}

/** The encrypted metadata of a secret. */
export interface AboutSecret extends Pick<Secret, 'name' | 'created_at' | 'policy_label'> {
	/** Whether the value was ever read, so that it must be redacted. */
	was_read: boolean
}

/** A decrypted record. */
export interface OpenSecret {
	id: string
	version: number
	about: AboutSecret
	data_key: KeyObject
}

export function nameHash(ring: Keyring, name: string): Buffer {
	return mac(ring.index, ['name', name])
}

/** Encrypts a value with a new data key. Returns the record and the encrypted value. */
export function sealSecret(
	{ id, version, about, value }: Omit<OpenSecret, 'data_key'> & { value: string },
	ring: Keyring,
	key_id: string,
): { record: SecretRecord; sealed: Uint8Array } {
	const master = ring.master(key_id)
	if (!master) throw new Fault('vault_locked', 'the key of the vault was changed meanwhile; start the gateway again')
	const key = newKey()
	return {
		record: {
			version,
			key_id,
			data_key: wrap(master, key, keyAbout(id, version, key_id)),
			about: sealAbout({ id, version, about, data_key: key }),
			name_hash: nameHash(ring, about.name),
		},
		sealed: seal(key, value, ['value of a secret', id, version]),
	}
}

export function sealAbout({ id, version, about, data_key }: OpenSecret): Uint8Array {
	return seal(data_key, JSON.stringify(about), ['secret', id, version])
}

/** Decrypts a record. Throws `store_damaged` if anything in it was changed, or its key is missing. */
export function openSecret(id: string, record: SecretRecord, ring: Keyring): OpenSecret {
	const { version } = record
	const data_key = dataKey(id, record, ring)
	const text = data_key && unseal(data_key, record.about, ['secret', id, version])
	const about = text && (JSON.parse(text.toString()) as AboutSecret)
	if (!about || !nameHash(ring, about.name).equals(record.name_hash)) throw damaged(id)
	return { id, version, about, data_key }
}

/** Decrypts a value. Throws `store_damaged`. */
export function openValue({ id, version, data_key }: OpenSecret, sealed: Uint8Array): string {
	const value = unseal(data_key, sealed, ['value of a secret', id, version])
	if (!value) throw damaged(id)
	return value.toString()
}

/** The record, with its data key encrypted with another master key. Undefined if the record is damaged. */
export function rewrapped(
	id: string,
	record: SecretRecord,
	ring: Keyring,
	{ id: key_id, key: master }: MasterKey,
): SecretRecord | undefined {
	const key = dataKey(id, record, ring)
	return key && { ...record, key_id, data_key: wrap(master, key, keyAbout(id, record.version, key_id)) }
}

export function damaged(id: string): Fault {
	return new Fault(
		'store_damaged',
		`the record of secret ${id} was changed outside the gateway or is damaged; delete the secret and store it again, or restore a backup`,
	)
}

function dataKey(id: string, { version, key_id, data_key }: SecretRecord, ring: Keyring): KeyObject | undefined {
	const master = ring.master(key_id)
	return master && unwrap(master, data_key, keyAbout(id, version, key_id))
}

function keyAbout(id: string, version: number, key_id: string) {
	return ['data key', id, version, key_id] as const
}
