/** AES-256-GCM, with associated data: sealed text that is moved to another record does not open there. */
import { createCipheriv, createDecipheriv, createHmac, createSecretKey, randomBytes } from 'node:crypto'
import type { KeyObject } from 'node:crypto'

/** The kind of a sealed text, and its owner. */
export type CipherIdentity = readonly [kind: string, ...identity: (string | number)[]]

const NONCE_BYTES = 12
const TAG_BYTES = 16
const KEY_BYTES = 32

/**
 * Returns nonce, ciphertext and tag. Bytes, since in text the redactor could mistake a part for a short secret. Random
 * nonces: one key is safe for 2^32 texts.
 */
export function seal(key: KeyObject, plain: string | Uint8Array, about: CipherIdentity): Uint8Array {
	const nonce = randomBytes(NONCE_BYTES)
	const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES }).setAAD(bytesOf(about))
	const text = typeof plain === 'string' ? cipher.update(plain, 'utf8') : cipher.update(plain)
	return Buffer.concat([nonce, text, cipher.final(), cipher.getAuthTag()])
}

/** Undefined if it was sealed with another key or other associated data, or was changed since. */
export function unseal(key: KeyObject, sealed: Uint8Array, about: CipherIdentity): Buffer | undefined {
	if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined
	const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
		.setAAD(bytesOf(about))
		.setAuthTag(sealed.subarray(-TAG_BYTES))
	const text = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES))
	try {
		return Buffer.concat([text, decipher.final()])
	} catch {
		return undefined
	}
}

export function newKey(): KeyObject {
	return keyOf(randomBytes(KEY_BYTES))
}

/** Takes ownership of the bytes and clears them. */
export function keyOf(bytes: Buffer): KeyObject {
	const key = createSecretKey(bytes)
	bytes.fill(0)
	return key
}

/** A key sealed under another one. */
export function wrap(under: KeyObject, key: KeyObject, about: CipherIdentity): Uint8Array {
	const bytes = key.export()
	const wrapped = seal(under, bytes, about)
	bytes.fill(0)
	return wrapped
}

export function unwrap(under: KeyObject, wrapped: Uint8Array, about: CipherIdentity): KeyObject | undefined {
	const bytes = unseal(under, wrapped, about)
	return bytes?.length === KEY_BYTES ? keyOf(bytes) : undefined
}

/** HMAC-SHA256: reveals nothing about the words without the key. */
export function mac(key: KeyObject, about: CipherIdentity): Buffer {
	return createHmac('sha256', key).update(bytesOf(about)).digest()
}

/** As JSON, so that different lists of words have different encodings. */
function bytesOf(about: CipherIdentity): Buffer {
	return Buffer.from(JSON.stringify(about))
}
