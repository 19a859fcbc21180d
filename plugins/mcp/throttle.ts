/**
 * Limits how much of a server's output is read in a period. The gateway parses output on its main thread. A server that sends
 * without end must not block it, and slows down while its output is not read.
 */

/** Short, so that one batch does not delay other work. */
const WINDOW_MS = 20
const FRAMES = 100
const BYTES = 1024 * 1024

/** The returned function counts the messages of a frame. It returns the milliseconds to wait before the next frame, nearly always 0. */
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
