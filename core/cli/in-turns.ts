const AT_ONCE = 8

/** A few at once, so that a large gateway is not asked for everything in one moment. Answers in the order of `all`. */
export async function inTurns<T, R>(all: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
	const found: R[] = []
	for (let at = 0; at < all.length; at += AT_ONCE)
		found.push(...(await Promise.all(all.slice(at, at + AT_ONCE).map(work))))
	return found
}
