import { eventually } from './wait.ts'

const DAY_MS = 24 * 3_600_000
/** Longer than a test file takes. */
const ROOM_MS = 60_000

/** For tests of limits and sums of a day: waits for the next day (UTC) if this one ends within a minute. */
export async function roomInDay(): Promise<void> {
	await eventually(() => DAY_MS - (Date.now() % DAY_MS) > ROOM_MS, Boolean, 2 * ROOM_MS)
}
