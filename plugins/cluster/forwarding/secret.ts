import { createHmac, createSecretKey, hkdfSync } from 'node:crypto'
import type { KeyObject } from 'node:crypto'

/** The shared secret by which the gateways of one installation recognize each other. */
export interface Secret {
	/** Signs forwarded requests. */
	key: KeyObject
	/** A value for the shared record from which others see whether they have the same key. It does not reveal the key. */
	checkOf(tenure: string): string
}

/** `installation`: the key that all its gateways have. `prefix`: `store.prefix`, which separates installations in one cluster. */
export function secretFrom(installation: KeyObject, prefix: string): Secret {
	const key = createSecretKey(Buffer.from(hkdfSync('sha256', installation, '', `svc gateways ${prefix}`, 32)))
	return {
		key,
		checkOf: (tenure) => createHmac('sha256', key).update(`check\n${tenure}`).digest('base64url').slice(0, 16),
	}
}
