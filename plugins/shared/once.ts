/** Makes it at the first call, for all that ask from then on; again after a failure. */
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
