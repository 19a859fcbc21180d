/**
 * How much of what a server sends is taken at once. Everything that a server says is parsed on the gateway's main thread: one
 * that talks without end gets the time that is left over, and slows down by itself, since nobody reads its output meanwhile.
 */
/** Short, so that what is taken in one go does not hold everything else up. */
const WINDOW_MS = 20
const FRAMES = 100
const BYTES = 1024 * 1024

export interface Throttle {
	/** Counts one frame, or as many as came in one. Answers how many milliseconds to wait before the next one; 0 nearly always. */
	take(bytes: number, frames?: number): number
}

export function openThrottle(now: () => number = () => performance.now()): Throttle {
	let until = 0
	let frames = 0
	let bytes = 0
	return {
		take(size, count = 1) {
			const at = now()
			if (at >= until) {
				until = at + WINDOW_MS
				frames = 0
				bytes = 0
			}
			frames += count
			bytes += size
			return frames >= FRAMES || bytes >= BYTES ? until - at : 0
		},
	}
}
