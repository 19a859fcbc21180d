/** Deadlines of this process that expire when a test says so: no test waits for one or races against it. */
import type { Test } from 'tap'

export interface Deadlines {
	/** How many were set so far. */
	set(): number
	/** How many are pending. */
	pending(): number
	/** Expires the pending ones now. */
	expire(): void
}

/** The longest time of a timer. */
const NEVER_MS = 2 ** 31 - 1

/** From now on, timers of `ms` milliseconds expire only by `expire`. Choose a number that nothing else in this process uses. */
export function watchDeadlines(t: Test, ms: number): Deadlines {
	const { setTimeout, clearTimeout } = globalThis
	const pending = new Map<unknown, () => void>()
	let set = 0
	globalThis.setTimeout = Object.assign((...args: Parameters<typeof setTimeout>) => {
		const [callback, delay, ...rest] = args
		if (delay !== ms) return setTimeout(...args)
		const timer = setTimeout(callback, NEVER_MS, ...rest)
		set++
		pending.set(timer, callback)
		return timer
	}, setTimeout)
	globalThis.clearTimeout = (timer) => {
		pending.delete(timer)
		clearTimeout(timer)
	}
	t.teardown(() => Object.assign(globalThis, { setTimeout, clearTimeout }))
	return {
		set: () => set,
		pending: () => pending.size,
		expire() {
			for (const [timer, callback] of pending) {
				globalThis.clearTimeout(timer as NodeJS.Timeout)
				callback()
			}
		},
	}
}
