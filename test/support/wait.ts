/** How tests wait: for a condition, and with a limit that a busy machine does not reach. */

/** What comes at all comes sooner, also while other programs use every processor. In milliseconds. */
export const WAIT_LIMIT_MS = 60_000
const LOOK_MS = 10

/**
 * Looks again and again until `enough` holds of what is found, and answers with that. Throws after `limit_ms`, with what
 * was found last.
 */
export async function eventually<T>(
	look: () => Promise<T> | T,
	enough: (value: T) => boolean = Boolean,
	limit_ms = WAIT_LIMIT_MS,
): Promise<T> {
	for (const end = Date.now() + limit_ms; ;) {
		const value = await look()
		if (enough(value)) return value
		if (Date.now() > end) throw new Error(`what was waited for did not come; it was ${JSON.stringify(value)}`)
		await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
	}
}
