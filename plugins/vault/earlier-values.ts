/**
 * The earlier values of a secret. They stay redacted, since agents that have read one may still repeat it. They are kept only for
 * secrets that were read, encrypted, until the secret is deleted.
 */
import { seal, unseal } from './cipher.ts'
import type { Keyring } from './keyring.ts'

export interface EarlierValue {
	value: string
	/** ISO 8601. Agents with a later grant have not seen the value. */
	replaced_at: string
}

/** Together with the current value, as many as the redactor searches for (core/redactor/secret-set.ts). */
const COUNT = 7
/** Limit of characters of all earlier values. The newest is always kept. */
const CHARACTERS = 64 * 1024

/** The record with `next` added, oldest first. `before`: the stored record, if there is one. */
export function sealEarlier(id: string, before: Uint8Array | undefined, next: EarlierValue, ring: Keyring): Uint8Array {
	const all = [...openEarlier(id, before, ring).filter(({ value }) => value !== next.value), next].slice(-COUNT)
	let characters = 0
	const first = all.findLastIndex(({ value }) => (characters += value.length) > CHARACTERS) + 1
	const kept = all.slice(Math.min(first, all.length - 1))
	return seal(ring.sealing, JSON.stringify(kept), aboutOf(id))
}

/** Oldest first. Empty if the record was changed outside the gateway. */
export function openEarlier(id: string, sealed: Uint8Array | undefined, ring: Keyring): EarlierValue[] {
	const text = sealed && unseal(ring.sealing, sealed, aboutOf(id))
	return text ? (JSON.parse(text.toString()) as EarlierValue[]) : []
}

function aboutOf(id: string) {
	return ['earlier values of a secret', id] as const
}
