/** Merges a change into settings, and returns the result. A field that is null is removed. */
export function merge(settings: Record<string, unknown>, change: Record<string, unknown>): Record<string, unknown> {
	return Object.fromEntries(Object.entries({ ...settings, ...change }).filter(([, value]) => value !== null))
}
