const FIRST_MS = 100
/** A connection that lasted this long was healthy: the next failure is a new problem. */
const SOUND_MS = 60_000
/** Upper limit for the delay that a platform asks for. */
const PATIENCE_MS = 3_600_000

/**
 * How long to wait between two attempts to connect: after a single failure hardly at all; a server that keeps failing is tried
 * less and less often, with jitter.
 */
export function openBackoff(maxMs: number, random = Math.random) {
	let failures = 0
	return {
		/** In milliseconds. `connected_ms`: for how long the last connection held; `atLeast`: what the platform asked for. */
		next(connected_ms: number, atLeast: number): number {
			if (connected_ms >= SOUND_MS) failures = 0
			const longest = Math.min(FIRST_MS * 2 ** failures++, maxMs)
			return Math.max(longest * (0.5 + random() / 2), Math.min(atLeast, PATIENCE_MS))
		},
		reset: () => void (failures = 0),
	}
}
