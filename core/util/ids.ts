import { randomBytes, randomFillSync } from 'node:crypto'

let lastMs = 0
let counter = 0
/** The first two fields of ids of `lastMs`. */
let prefix = ''

/**
 * A UUIDv7 (RFC 9562, method 1 of section 6.2): sorts by its time, and strictly within one process, even if many are made in one
 * millisecond or the clock is set back. `crypto.randomUUIDv7` sorts only to the millisecond.
 */
export function newId(): string {
	const ms = Date.now()
	if (ms > lastMs) begin(ms)
	else if (++counter > 0xfff) begin(lastMs + 1)
	return `${prefix}-${(0x7000 + counter).toString(16)}-${randomTail()}`
}

/** Random bytes in advance: requesting eight takes as long as thousands. */
const pool = Buffer.alloc(4_096)
let used = pool.length

/** The last two fields: the variant, and 62 random bits. */
function randomTail(): string {
	if (used === pool.length) {
		randomFillSync(pool)
		used = 0
	}
	pool[used] = ((pool[used] as number) & 0x3f) | 0x80
	const hex = pool.toString('hex', used, used + 8)
	used += 8
	return `${hex.slice(0, 4)}-${hex.slice(4)}`
}

function begin(ms: number): void {
	lastMs = ms
	counter = 0
	prefix = timeFields(ms)
}

/** The first two fields. */
function timeFields(ms: number): string {
	const time = ms.toString(16).padStart(12, '0')
	return `${time.slice(0, 8)}-${time.slice(8)}`
}

/** A UUIDv7 that sorts right after another one, independently of the clock. */
export function idAfter(id: string): string {
	const next = Number.parseInt(id.slice(15, 18), 16) + 1
	const time = next > 0xfff ? timeFields((timeOfId(id) ?? 0) + 1) : id.slice(0, 13)
	return `${time}-7${(next & 0xfff).toString(16).padStart(3, '0')}-${randomTail()}`
}

/** The time of a UUIDv7 in milliseconds since 1970. Undefined for other ids. */
export function timeOfId(id: string): number | undefined {
	if (!/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id)) return undefined
	return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

let textMs = Number.NaN
let text = ''

/** The current time in the format of the API: ISO 8601, UTC, milliseconds. */
export function now(): string {
	const ms = Date.now()
	if (ms !== textMs) {
		textMs = ms
		text = new Date(ms).toISOString()
	}
	return text
}

/** `bytes` random bytes in URL-safe base64: for tokens and one-time codes. */
export function randomText(bytes: number): string {
	return randomBytes(bytes).toString('base64url')
}
