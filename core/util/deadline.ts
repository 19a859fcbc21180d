/** Something took longer than it may. */
export class Late extends Error {}

/** Waits for `work`, but no longer: then throws `Late`, which says so of `what`, a phrase such as `plugin "x"`. */
export async function within<T>(ms: number, what: string, work: T | Promise<T>): Promise<T> {
	let timer: NodeJS.Timeout | undefined
	const late = new Promise<never>((_, reject) => {
		timer = setTimeout(() => reject(new Late(`${what} did not answer within ${ms / 1000} s`)), ms)
	})
	try {
		return await Promise.race([work, late])
	} finally {
		clearTimeout(timer)
	}
}
