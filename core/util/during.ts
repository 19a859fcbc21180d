/**
 * Gives `work` a signal that follows `signal` until it settles: what still listens then, such as a client that never stops
 * listening, hears nothing of what ends later. Throws the reason where `signal` has aborted before.
 */
export async function during<T>(signal: AbortSignal, work: (own: AbortSignal) => T): Promise<Awaited<T>> {
	signal.throwIfAborted()
	const own = new AbortController()
	const abort = (): void => own.abort(signal.reason)
	signal.addEventListener('abort', abort, { once: true })
	try {
		return await work(own.signal)
	} finally {
		signal.removeEventListener('abort', abort)
	}
}
