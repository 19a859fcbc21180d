import { Fault } from '../errors.ts'

/** What lies above fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export interface Deadline {
	signal: AbortSignal
	/** Lets go of the timer and of all signals. */
	end(): void
	/** Aborts, and ends. */
	abort(reason: unknown): void
}

/** Aborts when the time is over or one of `outer` aborts. `release` is called once, when it ends. */
export function startDeadline(
	ms: number,
	outer: readonly (AbortSignal | null | undefined)[],
	release: () => void,
): Deadline {
	const controller = new AbortController()
	const listening = new AbortController()
	const abort = (reason: unknown): void => {
		controller.abort(reason)
		end()
	}
	const late = (): void => abort(new Fault('fetch_timeout', `no complete answer came within ${ms / 1000} s`))
	const timer = ms === Infinity ? undefined : setTimeout(late, Math.min(ms, LONGEST_TIMER_MS))
	function end(): void {
		clearTimeout(timer)
		if (listening.signal.aborted) return
		listening.abort()
		release()
	}
	for (const signal of outer) {
		if (signal?.aborted) abort(signal.reason)
		signal?.addEventListener('abort', () => abort(signal.reason), { once: true, signal: listening.signal })
	}
	return { signal: controller.signal, end, abort }
}
