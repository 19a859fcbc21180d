/** Observes a call's deadlines by the timers of this process, so that no test waits for one or races against it. */
import type { Test } from 'tap'

export interface Deadlines {
	/** How many were set so far. */
	set(): number
	/** How many are pending. */
	pending(): number
	/** Expires the pending ones now. */
	expire(): void
}

/** Observes timers of `ms` milliseconds from now on. Choose a number that nothing else in this process uses. */
export function watchDeadlines(t: Test, ms: number): Deadlines {
	const { setTimeout, clearTimeout } = globalThis
	const pending = new Map<unknown, () => void>()
	let set = 0
	globalThis.setTimeout = Object.assign((...args: Parameters<typeof setTimeout>) => {
		const timer = setTimeout(...args)
		if (args[1] === ms) {
			set++
			pending.set(timer, args[0])
		}
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
