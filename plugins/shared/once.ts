/** Calls `make` at the first call, and returns the same result from then on. After a failure, the next call tries again. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
	let made: Promise<T> | undefined
	return async () => {
		try {
			return await (made ??= make())
		} catch (error) {
			made = undefined
			throw error
		}
	}
}
