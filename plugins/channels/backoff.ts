/** How long to wait between two attempts to connect. */
export interface Backoff {
	/** In milliseconds. `connected_ms`: for how long the last connection held; `atLeast`: what the platform asked for. */
	next(connected_ms: number, atLeast: number): number
	reset(): void
}

const FIRST_MS = 100
/** A connection that lasted this long was healthy: the next failure is a new problem. */
const SOUND_MS = 60_000
/** Upper limit for the delay that a platform asks for. */
const PATIENCE_MS = 3_600_000

/** After a single failure, retries at once; a server that keeps failing is tried less and less often, with jitter. */
export function openBackoff(maxMs: number, random = Math.random): Backoff {
	let failures = 0
	return {
		next(connected_ms, atLeast) {
			if (connected_ms >= SOUND_MS) failures = 0
			const longest = Math.min(FIRST_MS * 2 ** failures++, maxMs)
			return Math.max(longest * (0.5 + random() / 2), Math.min(atLeast, PATIENCE_MS))
		},
		reset: () => void (failures = 0),
	}
}
