/** How long to wait between two attempts to connect. */
export interface Backoff {
	/** In milliseconds. `connected_ms`: for how long the last connection held; `atLeast`: what the platform asked for. */
	next(connected_ms: number, atLeast: number): number
	reset(): void
}

const FIRST_MS = 100
/** A connection that held for so long was sound: what comes next is a trouble of its own. */
const SOUND_MS = 60_000
/** What a platform asks for is believed up to here. */
const PATIENCE_MS = 3_600_000

/** A single cut is mended at once; a server that fails again and again is asked ever less often, and not by all at the same time. */
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
