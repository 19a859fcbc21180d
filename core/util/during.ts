import { addAbortListener } from 'node:events'

/**
 * Calls `work` with a signal that aborts with `signal`, but not after `work` has settled, so that its listeners need not be
 * removed. Throws the reason if `signal` has aborted already.
 */
export async function during<T>(signal: AbortSignal, work: (own: AbortSignal) => T): Promise<Awaited<T>> {
	signal.throwIfAborted()
	const own = new AbortController()
	using _ = addAbortListener(signal, () => own.abort(signal.reason))
	return await work(own.signal)
}
