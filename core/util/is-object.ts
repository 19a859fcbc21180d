/** True for an object that is neither an array nor null. */
export function isObject(value: unknown): value is Record<string, unknown> {
	return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value as an object whose fields are unknown; without fields if it is no object. */
export function fieldsOf(value: unknown): Record<string, unknown> {
	return isObject(value) ? value : {}
}
