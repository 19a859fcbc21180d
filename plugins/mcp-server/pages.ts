/** The next `limit` entries of a list sorted by name, after `after` if given. `next`: for the page after it. */
export async function page<T extends { name: string }>(
	list: AsyncIterable<T>,
	limit: number,
	after?: string,
): Promise<{ items: T[]; next: string | null }> {
	const items: T[] = []
	for await (const one of list) {
		if (after !== undefined && one.name <= after) continue
		if (items.length === limit) return { items, next: items.at(-1)?.name ?? null }
		items.push(one)
	}
	return { items, next: null }
}
