import { Fault } from '../errors.ts'
import { TIMER_LIMIT_MS } from '../util/timer-limit.ts'

/** Aborts after `ms`, or when one of `outer` aborts. `release` is called once, when the deadline ends. */
export function startDeadline(ms: number, outer: readonly (AbortSignal | null | undefined)[], release: () => void) {
	const controller = new AbortController()
	const listening = new AbortController()
	/** Aborts `signal`, and ends. */
	const abort = (reason: unknown): void => {
		controller.abort(reason)
		end()
	}
	const late = (): void => abort(new Fault('fetch_timeout', `no complete answer came within ${ms / 1000} s`))
	const timer = ms === Infinity ? undefined : setTimeout(late, Math.min(ms, TIMER_LIMIT_MS))
	/** Stops the timer, and listening to all signals. */
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
