/** The timers of one instance: they end with it, never overlap themselves, and never keep the process alive. */
import { pluginInvalid } from '../errors.ts'
import { TIMER_LIMIT_MS } from '../util/timer-limit.ts'

export interface TimerOptions {
	/** Aborts before the instance is released. */
	signal: AbortSignal
	/** Calls the plugin's code and reports its error. Never rejects. */
	call(work: () => unknown): Promise<void>
}

/** Timers of one plugin at the same time. */
const PLUGIN_LIMIT = 1_000

export function openTimers({ signal, call }: TimerOptions) {
	const running = new Set<Promise<void>>()
	const stops = new Set<() => void>()
	signal.addEventListener('abort', () => {
		for (const stop of stops) stop()
	})

	const start = (ms: number, work: () => unknown, repeats: boolean): (() => void) => {
		if (!Number.isInteger(ms) || ms < 1 || ms > TIMER_LIMIT_MS)
			throw pluginInvalid(`a timer needs a whole number of milliseconds from 1 to ${TIMER_LIMIT_MS}, not ${ms}`)
		if (stops.size >= PLUGIN_LIMIT)
			throw pluginInvalid(`a plugin has at most ${PLUGIN_LIMIT} timers; end some before you start others`)
		let timer: NodeJS.Timeout | undefined
		const stop = (): void => {
			clearTimeout(timer)
			stops.delete(stop)
		}
		const due = async (): Promise<void> => {
			if (!repeats) stop()
			const calling = call(work)
			running.add(calling)
			await calling
			running.delete(calling)
			if (stops.has(stop)) wait()
		}
		const wait = (): void => {
			timer = setTimeout(() => void due(), ms).unref()
		}
		if (signal.aborted) return stop
		stops.add(stop)
		wait()
		return stop
	}
	return {
		every: (ms: number, work: () => unknown) => start(ms, work, true),
		after: (ms: number, work: () => unknown) => start(ms, work, false),
		count: () => stops.size,
		/** Settles once no call is running. */
		idle: async () => void (await Promise.all(running)),
	}
}
