/** Tests wait for conditions, with a limit that even a busy machine does not reach. */

/** Long enough even if other programs use all processors. In milliseconds. */
export const WAIT_LIMIT_MS = 60_000
/** Polling interval: a twentieth of the time so far, within these limits. Most polls are requests, which slow the gateway down. */
const POLL_MS = { least: 10, most: 50 }

/**
 * Polls `look` until `enough` accepts its value, and returns that value. Throws after `limit_ms`, with the last value.
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
		if (waited_ms > limit_ms)
			throw new Error(`timed out waiting for a condition; the last value was ${JSON.stringify(value)}`)
		const next_ms = Math.min(Math.max(waited_ms / 20, POLL_MS.least), POLL_MS.most)
		await new Promise((resolve) => setTimeout(resolve, next_ms))
	}
}

/** Waits for conditions that can change only at certain moments, without polling. */
export interface Watch {
	/** Checks all conditions that are waited for. Call it after every change. */
	check(): void
	/**
	 * Settles with the first value of `find` that is not undefined. Rejects with an error of `find`, and after `limit_ms`
	 * (default `WAIT_LIMIT_MS`) with the message from `late`.
	 */
	until<T>(find: () => T | undefined, late: () => string, limit_ms?: number): Promise<T>
}

export function openWatch(): Watch {
	const checks = new Set<() => void>()
	return {
		check() {
			for (const check of checks) check()
		},
		until<T>(find: () => T | undefined, late: () => string, limit_ms = WAIT_LIMIT_MS) {
			const { promise, resolve, reject } = Promise.withResolvers<T>()
			const check = (): void => {
				try {
					const found = find()
					if (found !== undefined) resolve(found)
				} catch (error) {
					reject(error as Error)
				}
			}
			const timer = setTimeout(() => reject(new Error(late())), limit_ms)
			checks.add(check)
			check()
			return promise.finally(() => {
				clearTimeout(timer)
				checks.delete(check)
			})
		},
	}
}
