const FIRST_MS = 100
/** After a connection that lasted this long, delays start from the beginning. */
const HEALTHY_MS = 60_000
/** Upper limit for a delay that a platform requests. */
const REQUESTED_LIMIT_MS = 3_600_000

/**
 * Delays between attempts to connect: exponential backoff from 100 ms to `maxMs`, with jitter.
 */
export function openBackoff(maxMs: number, random = Math.random) {
	let failures = 0
	return {
		/** In milliseconds. `connected_ms`: how long the last connection lasted. `atLeast`: the delay that the platform requested. */
		next(connected_ms: number, atLeast: number): number {
			if (connected_ms >= HEALTHY_MS) failures = 0
			const longest = Math.min(FIRST_MS * 2 ** failures++, maxMs)
			return Math.max(longest * (0.5 + random() / 2), Math.min(atLeast, REQUESTED_LIMIT_MS))
		},
		reset: () => void (failures = 0),
	}
}
