/** Something exceeded its deadline. */
export class Late extends Error {}

const PARTS = 10

/**
 * Waits for `work`, at most `ms`; then throws `Late`, whose message begins with `what`, such as `plugin "x"`. The time is counted
 * in parts, so that work is not late only because this process was blocked meanwhile.
 */
export function within<T>(ms: number, what: string, work: T | Promise<T>): Promise<T> {
	if (!isPending(work)) return Promise.resolve(work)
	let left = Math.max(1, Math.min(PARTS, Math.floor(ms)))
	return new Promise<T>((resolve, reject) => {
		const timer = setTimeout(() => {
			if (--left > 0) timer.refresh()
			else reject(new Late(`${what} did not answer within ${ms / 1000} s`))
		}, ms / left)
		work.then(
			(result) => {
				clearTimeout(timer)
				resolve(result)
			},
			(error: unknown) => {
				clearTimeout(timer)
				reject(error as Error)
			},
		)
	})
}

/** Plugins may return any object with `then`. */
function isPending<T>(work: T | Promise<T>): work is Promise<T> {
	return typeof (work as { then?: unknown } | null | undefined)?.then === 'function'
}
