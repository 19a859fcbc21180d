/** AES-256-GCM with associated data: encrypted text that is moved to another record cannot be decrypted there. */
import { createCipheriv, createDecipheriv, createHmac, createSecretKey, randomBytes } from 'node:crypto'
import type { KeyObject } from 'node:crypto'

/** The associated data: the kind of an encrypted text, and its owner. */
export type CipherIdentity = readonly [kind: string, ...identity: (string | number)[]]

const NONCE_BYTES = 12
const TAG_BYTES = 16
const KEY_BYTES = 32

/**
 * Returns nonce, ciphertext and tag. They stay bytes, since the redactor could find a short secret in an encoded text. Nonces
 * are random, so one key may encrypt up to 2^32 texts.
 */
export function seal(key: KeyObject, plain: string | Uint8Array, about: CipherIdentity): Uint8Array {
	const nonce = randomBytes(NONCE_BYTES)
	const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES }).setAAD(bytesOf(about))
	const text = typeof plain === 'string' ? cipher.update(plain, 'utf8') : cipher.update(plain)
	return Buffer.concat([nonce, text, cipher.final(), cipher.getAuthTag()])
}

/** Undefined if the text was encrypted with another key or other associated data, or was changed since. */
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

/** Encrypts a key with another key. */
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

/** HMAC-SHA256, which reveals nothing about the data without the key. */
export function mac(key: KeyObject, about: CipherIdentity): Buffer {
	return createHmac('sha256', key).update(bytesOf(about)).digest()
}

/** As JSON, so that different lists have different encodings. */
function bytesOf(about: CipherIdentity): Buffer {
	return Buffer.from(JSON.stringify(about))
}
