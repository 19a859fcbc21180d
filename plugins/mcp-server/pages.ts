/** The next `limit` of a list that is sorted by name, those behind `after` where that is given. `next`: for the page behind. */
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
