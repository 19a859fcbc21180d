/** JSON with sorted keys: the same text for the same data, whatever the order of its keys. */
export function canonicalJson(value: unknown): string {
	return JSON.stringify(value, (_key, one: unknown) =>
		typeof one === 'object' && one !== null && !Array.isArray(one)
			? Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1)))
			: one,
	)
}
