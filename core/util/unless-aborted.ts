import { onAbort } from './on-abort.ts'

/** Waits for `work`, but throws the reason of the signal if that aborts, or has aborted. */
export function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
	const { promise, reject } = Promise.withResolvers<never>()
	const stay = onAbort(signal, () => reject(signal.reason))
	if (signal.aborted) reject(signal.reason)
	return Promise.race([promise, work]).finally(stay)
}
