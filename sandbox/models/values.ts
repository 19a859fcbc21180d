/** Reads untrusted data of a server. */
export function isObject(value: unknown): value is Record<string, unknown> {
	return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Shared, since most fields of most chunks of a stream are absent. */
const noFields: Readonly<Record<string, unknown>> = Object.freeze({})
const noItems: readonly unknown[] = Object.freeze([])

/** An empty object if it is not an object. */
export function objectIn(value: unknown): Readonly<Record<string, unknown>> {
	return isObject(value) ? value : noFields
}

export function listIn(value: unknown): readonly unknown[] {
	return Array.isArray(value) ? value : noItems
}

/** Empty if it is not a string. */
export function stringIn(value: unknown): string {
	return typeof value === 'string' ? value : ''
}

/** A count of tokens; undefined if it is invalid, or too large for any model. */
export function countIn(value: unknown): number | undefined {
	return typeof value === 'number' && value >= 0 && value <= TOKENS_LIMIT ? Math.ceil(value) : undefined
}

const TOKENS_LIMIT = 1_000_000_000

/** The arguments of a call; empty if they are not a JSON object. */
export function argumentsIn(text: string): Readonly<Record<string, unknown>> {
	return objectIn(parsed(text))
}

/** Some servers parse earlier calls, and refuse the whole conversation if the arguments of one are not a JSON object. */
export function parseable(args: string): string {
	return isObject(parsed(args)) ? args : '{}'
}

/** Undefined if it is not JSON. */
export function parsed(text: string): unknown {
	try {
		return JSON.parse(text)
	} catch {
		return undefined
	}
}
