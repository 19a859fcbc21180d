/** Reads untrusted data of a server. */

/** Limit of a count of tokens; larger ones are invalid for any model. */
const TOKENS_LIMIT = 1_000_000_000

export function listIn(value: unknown): readonly unknown[] {
	return Array.isArray(value) ? value : []
}

/** Empty if it is not a string. */
export function stringIn(value: unknown): string {
	return typeof value === 'string' ? value : ''
}

/** A count of tokens; undefined if it is invalid. */
export function countIn(value: unknown): number | undefined {
	return typeof value === 'number' && value >= 0 && value <= TOKENS_LIMIT ? Math.ceil(value) : undefined
}
