/**
 * Calls `work` with a signal that follows `signal` until `work` has settled, and never aborts after that, also for listeners
 * that are never removed. Throws the reason if `signal` has aborted already.
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
