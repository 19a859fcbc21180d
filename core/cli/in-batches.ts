const BATCH = 8

/** Works on 8 items at a time, so that a large gateway does not get all requests at once. Results are in the order of `all`. */
export async function inBatches<T, R>(all: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
	const results: R[] = []
	for (let at = 0; at < all.length; at += BATCH)
		results.push(...(await Promise.all(all.slice(at, at + BATCH).map(work))))
	return results
}
