/** How tests wait: for a condition, and with a limit that a busy machine does not reach. */

/** What comes at all comes sooner, also while other programs use every processor. In milliseconds. */
export const WAIT_LIMIT_MS = 60_000
/** Between two looks: a twentieth of the wait so far, in these limits. Most looks are requests, which keep the gateway from its work. */
const LOOK_MS = { least: 10, most: 50 }

/**
 * Looks again and again until `enough` holds of what is found, and answers with that. Throws after `limit_ms`, with what
 * was found last.
 */
export async function eventually<T>(
	look: () => Promise<T> | T,
	enough: (value: T) => boolean = Boolean,
	limit_ms = WAIT_LIMIT_MS,
): Promise<T> {
	for (const began = Date.now(); ;) {
		const value = await look()
		if (enough(value)) return value
		const waited_ms = Date.now() - began
		if (waited_ms > limit_ms) throw new Error(`what was waited for did not come; it was ${JSON.stringify(value)}`)
		const next_ms = Math.min(Math.max(waited_ms / 20, LOOK_MS.least), LOOK_MS.most)
		await new Promise((resolve) => setTimeout(resolve, next_ms))
	}
}
