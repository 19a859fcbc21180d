/** What a call's deadlines do, told from the timers of this process: no test has to wait for one, or to be faster than one. */
import type { Test } from 'tap'

export interface Deadlines {
	/** How often one was set. */
	set(): number
	/** Those that may still strike. */
	running(): number
	/** Has them strike now. */
	strike(): void
}

/** Watches the timers of so many milliseconds from now on. Choose a number that nothing else in this process uses. */
export function watchDeadlines(t: Test, ms: number): Deadlines {
	const { setTimeout, clearTimeout } = globalThis
	const running = new Map<unknown, () => void>()
	let set = 0
	globalThis.setTimeout = Object.assign((...args: Parameters<typeof setTimeout>) => {
		const timer = setTimeout(...args)
		if (args[1] === ms) {
			set++
			running.set(timer, args[0])
		}
		return timer
	}, setTimeout)
	globalThis.clearTimeout = (timer) => {
		running.delete(timer)
		clearTimeout(timer)
	}
	t.teardown(() => Object.assign(globalThis, { setTimeout, clearTimeout }))
	return {
		set: () => set,
		running: () => running.size,
		strike() {
			for (const [timer, act] of running) {
				globalThis.clearTimeout(timer as NodeJS.Timeout)
				act()
			}
		},
	}
}
