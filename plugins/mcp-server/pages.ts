/** Up to `limit` entries of a list sorted by name, beginning after the name `after`. `next`: the `after` of the next page. */
export async function page<T extends { name: string }>(
	list: AsyncIterable<T>,
	limit: number,
	after?: string,
): Promise<{ items: T[]; next: string | null }> {
	const items: T[] = []
	for await (const item of list) {
		if (after !== undefined && item.name <= after) continue
		if (items.length === limit) return { items, next: items.at(-1)?.name ?? null }
		items.push(item)
	}
	return { items, next: null }
}
