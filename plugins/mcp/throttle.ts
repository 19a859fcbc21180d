/**
 * How much of a server's output is read at once. Output is parsed on the gateway's main thread: a server that sends without
 * end gets only spare time, and slows down, since its output is not read in the meantime.
 */

/** Short, so that one batch does not delay everything else. */
const WINDOW_MS = 20
const FRAMES = 100
const BYTES = 1024 * 1024

/** The function counts one frame, or the messages in it. Returns the milliseconds to wait before the next one, nearly always 0. */
export function openThrottle(now: () => number = () => performance.now()): (bytes: number, frames?: number) => number {
	let until = 0
	let frames = 0
	let bytes = 0
	return (size, count = 1) => {
		const at = now()
		if (at >= until) {
			until = at + WINDOW_MS
			frames = 0
			bytes = 0
		}
		frames += count
		bytes += size
		return frames >= FRAMES || bytes >= BYTES ? until - at : 0
	}
}
