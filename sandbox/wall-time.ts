import { Fault } from '../core/errors.ts'
import { TIMER_LIMIT_MS } from '../core/util/timer-limit.ts'
import type { RunOrder } from '../core/protocol.ts'
import { exceeded } from './limits.ts'

export type WallTime = ReturnType<typeof wallTime>

/** The clock of a run's wall time. It does not interrupt a running tool call: the main thread does that if the run does not end. */
export function wallTime({ limits, remaining_ms, journal }: RunOrder, runSignal: AbortSignal) {
	let controller = new AbortController()
	let over = remaining_ms <= 0
	let ends = performance.now() + remaining_ms
	let timer: NodeJS.Timeout | undefined
	const arm = (): void => {
		clearTimeout(timer)
		timer = setTimeout(
			() => {
				over = true
				controller.abort()
			},
			Math.min(Math.max(0, ends - performance.now()), TIMER_LIMIT_MS),
		)
	}
	arm()
	const stop = (): void => controller.abort(runSignal.reason)
	if (runSignal.aborted) stop()
	else runSignal.addEventListener('abort', stop, { once: true })
	return {
		/** Aborts with the signal of the run, and when the time is over. */
		signal: (): AbortSignal => controller.signal,
		/** Milliseconds; 0 when the time is over. */
		left_ms: (): number => Math.max(0, ends - performance.now()),
		/** Throws if the run must not continue. `failure`: of its model call, which was to be repeated. */
		check(failure?: string): void {
			if (runSignal.aborted) throw new Fault('stopped', String(runSignal.reason))
			if (!over) return
			const { code, message } = exceeded('limit_wall_time', { limits, journal, elsewhere: 0 })
			throw new Fault(code, failure === undefined ? message : `${message}; its model call kept failing: ${failure}`)
		},
		/** Stops the clock until the returned function is called. */
		hold(): () => void {
			const left = ends - performance.now()
			clearTimeout(timer)
			return () => {
				ends = performance.now() + left
				arm()
			}
		},
		/** Adds time that was not active. To be called only between model calls: it may create a new signal. */
		extend(ms: number): void {
			ends += ms
			if (over && !runSignal.aborted) controller = new AbortController()
			over = ends <= performance.now()
			arm()
		},
		end(): void {
			clearTimeout(timer)
			runSignal.removeEventListener('abort', stop)
		},
	}
}
