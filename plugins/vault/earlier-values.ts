/**
 * The values that a secret had before: agents that have read one may still repeat it, so it stays redacted. Kept only for secrets that
 * were read, encrypted, and deleted together with the secret.
 */
import { seal, unseal } from './cipher.ts'
import type { Keyring } from './keyring.ts'

export interface EarlierValue {
	value: string
	/** ISO 8601. Agents with a later grant have not seen the value. */
	replaced_at: string
}

/** With the current one, as many as are redacted; see core/redactor/secret-set.ts. */
const COUNT = 7
/** Characters of all of them; the newest is kept in any case. */
const CHARACTERS = 64 * 1024

/** The record with `next` added, oldest first. `before`: the stored record, if there is one. */
export function sealEarlier(id: string, before: Uint8Array | undefined, next: EarlierValue, ring: Keyring): Uint8Array {
	const all = [...openEarlier(id, before, ring).filter(({ value }) => value !== next.value), next].slice(-COUNT)
	let characters = 0
	const first = all.findLastIndex(({ value }) => (characters += value.length) > CHARACTERS) + 1
	const kept = all.slice(Math.min(first, all.length - 1))
	return seal(ring.sealing, JSON.stringify(kept), aboutOf(id))
}

/** Oldest first; none if the record was changed outside the gateway. */
export function openEarlier(id: string, sealed: Uint8Array | undefined, ring: Keyring): EarlierValue[] {
	const text = sealed && unseal(ring.sealing, sealed, aboutOf(id))
	return text ? (JSON.parse(text.toString()) as EarlierValue[]) : []
}

function aboutOf(id: string) {
	return ['earlier values of a secret', id] as const
}
