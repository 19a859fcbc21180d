import { Fault } from '../errors.ts'
import type { Key } from './ports.ts'

const separator = '\0'
const maxBytes = 1000
/** The maximum size of the id of a job, a run or an agent. */
export const maxNameBytes = 256

/**
 * A key as one string: its parts with NUL between them. No part contains NUL, which sorts below every other character, so
 * the strings' UTF-8 bytes sort as the ports require. Throws `invalid_request` for an invalid key.
 */
export function joinKey(key: Key): string {
	if (!Array.isArray(key) || key.length === 0) throw invalid('a key needs at least one part, its scope')
	for (const part of key) {
		if (typeof part !== 'string' || part === '') throw invalid('each part of a key must be a non-empty string')
		if (part.includes(separator)) throw invalid('a part of a key must not contain the character NUL')
	}
	const joined = key.join(separator)
	// A lone surrogate has no UTF-8 form: two different keys would become one.
	if (!joined.isWellFormed()) throw invalid('a part of a key contains half of a surrogate pair')
	// Saves the count of bytes: a UTF-16 code unit has at most three bytes in UTF-8.
	if (joined.length * 3 <= maxBytes) return joined
	const bytes = Buffer.byteLength(joined)
	if (bytes > maxBytes) throw invalid(`a key may have at most ${maxBytes} bytes, this one has ${bytes}`)
	return joined
}

/** Whether a text can be a part of a key that an engine makes: not empty, without NUL, well-formed, at most 256 bytes. */
export function isName(text: string): boolean {
	return text !== '' && !text.includes(separator) && text.isWellFormed() && Buffer.byteLength(text) <= maxNameBytes
}

/** The key of `joinKey`. */
export function splitKey(joined: string): Key {
	return joined.split(separator) as [string, ...string[]]
}

/** Whether a key's first parts are those of `prefix`; both joined. */
export function isWithin(joined: string, prefix: string): boolean {
	return joined.startsWith(prefix) && (joined.length === prefix.length || joined[prefix.length] === separator)
}

/** The lowest string above every key that starts with the parts of `prefix`: `prefix` itself, and keys that continue with NUL. */
export function endOf(prefix: string): string {
	return `${prefix}\u0001`
}

/** The lowest string above `joined`. */
export function keyAfter(joined: string): string {
	return joined + separator
}

/** The order of two joined keys by their UTF-8 bytes, which for characters above U+FFFF is not that of UTF-16. */
export function compareKeys(a: string, b: string): number {
	return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

/** The error for an invalid argument of the store. */
export function invalid(message: string): Fault {
	return new Fault('invalid_request', message)
}

/** The scope of a joined key or prefix. */
export function scopeOf(joined: string): string {
	const end = joined.indexOf('\0')
	return end < 0 ? joined : joined.slice(0, end)
}
