/** Measures of time on which other programs of the machine have next to no influence. */

const TICK_MS = 10

/**
 * The time for which this process could act, in ms: how often a timer fired, times its distance. It stands still while
 * the process is held up, by others or by itself, so a timer of the code under test that is in time is in time by it.
 */
export function timeToAct(): { passed(): number; [Symbol.dispose](): void } {
	let ticks = 0
	const timer = setInterval(() => ticks++, TICK_MS)
	return { passed: () => ticks * TICK_MS, [Symbol.dispose]: () => clearInterval(timer) }
}
