/** Something took longer than it may. */
export class Late extends Error {}

const PARTS = 10

/**
 * Waits for `work`, but no longer: then throws `Late`, which says so of `what`, a phrase such as `plugin "x"`. The time is
 * counted in parts, so that work which is done while this process itself is held up is not late.
 */
export async function within<T>(ms: number, what: string, work: T | Promise<T>): Promise<T> {
	if (!isPending(work)) return work
	let left = Math.max(1, Math.min(PARTS, Math.floor(ms)))
	const part = ms / left
	let timer: NodeJS.Timeout | undefined
	try {
		return await new Promise<T>((resolve, reject) => {
			const tick = (): void => {
				if (--left <= 0) reject(new Late(`${what} did not answer within ${ms / 1000} s`))
				else timer = setTimeout(tick, part)
			}
			timer = setTimeout(tick, part)
			work.then(resolve, reject)
		})
	} finally {
		clearTimeout(timer)
	}
}

/** Plugins may give any object with `then`. */
function isPending<T>(work: T | Promise<T>): work is Promise<T> {
	return typeof (work as { then?: unknown } | null | undefined)?.then === 'function'
}
