/** Looks into what a server sent, trusting nothing of it. */
export function isObject(value: unknown): value is Record<string, unknown> {
	return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An empty object if it is not an object. */
export function objectIn(value: unknown): Record<string, unknown> {
	return isObject(value) ? value : {}
}

export function listIn(value: unknown): unknown[] {
	return Array.isArray(value) ? value : []
}

/** Empty if it is not a string. */
export function stringIn(value: unknown): string {
	return typeof value === 'string' ? value : ''
}

/** A count of tokens; undefined if it is not one, or more than any model takes or gives. */
export function countIn(value: unknown): number | undefined {
	return typeof value === 'number' && value >= 0 && value <= TOKENS_LIMIT ? Math.ceil(value) : undefined
}

const TOKENS_LIMIT = 1_000_000_000

/** Undefined if it is not JSON. */
export function parsed(text: string): unknown {
	try {
		return JSON.parse(text)
	} catch {
		return undefined
	}
}
