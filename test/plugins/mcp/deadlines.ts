/** What a call's deadlines do, told from the timers of this process: no test has to wait for one, or to be faster than one. */
import type { Test } from 'tap'

export interface Deadlines {
	/** How often one was set. */
	set(): number
	/** Those that may still strike. */
	running(): number
}

/** Counts the timers of so many milliseconds from now on. Choose a number that nothing else in this process uses. */
export function watchDeadlines(t: Test, ms: number): Deadlines {
	const { setTimeout, clearTimeout } = globalThis
	const running = new Set<unknown>()
	let set = 0
	globalThis.setTimeout = Object.assign((...args: Parameters<typeof setTimeout>) => {
		const timer = setTimeout(...args)
		if (args[1] === ms) {
			set++
			running.add(timer)
		}
		return timer
	}, setTimeout)
	globalThis.clearTimeout = (timer) => {
		running.delete(timer)
		clearTimeout(timer)
	}
	t.teardown(() => Object.assign(globalThis, { setTimeout, clearTimeout }))
	return { set: () => set, running: () => running.size }
}
