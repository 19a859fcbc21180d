import { createHmac, createSecretKey, hkdfSync } from 'node:crypto'
import type { KeyObject } from 'node:crypto'

/** By which the gateways of one installation recognize each other. */
export interface Secret {
	/** Signs what is forwarded. */
	key: KeyObject
	/** For the record that all of them read: shows who has the same key, and nothing of it. */
	checkOf(tenure: string): string
}

/** `installation`: the key that all gateways have. `prefix`: keeps apart installations in one cluster (`store.prefix`). */
export function secretFrom(installation: KeyObject, prefix: string): Secret {
	const key = createSecretKey(Buffer.from(hkdfSync('sha256', installation, '', `svc gateways ${prefix}`, 32)))
	return {
		key,
		checkOf: (tenure) => createHmac('sha256', key).update(`check\n${tenure}`).digest('base64url').slice(0, 16),
	}
}
