/** A measure of time that other programs on the machine hardly affect. */

const TICK_MS = 10

/**
 * The time in which this process could run timers, in ms: the ticks of an interval times its length. It stops while the process is
 * blocked, by others or by itself, so timers of the code under test are never late by this measure.
 */
export function startTimerClock(): { passed(): number; [Symbol.dispose](): void } {
	let ticks = 0
	const timer = setInterval(() => ticks++, TICK_MS)
	return { passed: () => ticks * TICK_MS, [Symbol.dispose]: () => clearInterval(timer) }
}
