/** Times in deliveries, which make old deliveries useless to whoever has seen them. */

/** From here on a number counts milliseconds, not seconds. */
const MILLISECONDS = 100_000_000_000

/** Whether a time, in seconds or milliseconds since 1970, is near `now`, in milliseconds. */
export function isTimely(time: string | number, tolerance_s: number, now: number): boolean {
	if (!/^\d{1,15}$/.test(String(time))) return false
	const value = Number(time)
	const ms = value < MILLISECONDS ? value * 1000 : value
	return Math.abs(now - ms) <= tolerance_s * 1000
}
