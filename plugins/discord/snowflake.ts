/** Discord's ids (snowflakes). Their upper bits are a timestamp, so newer ids are greater. */

/** The first millisecond of 2015. */
const EPOCH = 1_420_070_400_000

export const isSnowflake = (id: unknown): id is string => typeof id === 'string' && /^\d{1,20}$/.test(id)

/** The lowest id at a time, in ms since 1970. */
export const snowflakeAt = (ms: number): string => String(BigInt(Math.max(0, Math.floor(ms) - EPOCH)) << 22n)

export const timeOf = (id: string): number => Number(BigInt(id) >> 22n) + EPOCH

/** For sorting, oldest first. */
export const byAge = (a: string, b: string): number => (BigInt(a) < BigInt(b) ? -1 : BigInt(a) > BigInt(b) ? 1 : 0)

/** Messages are not delivered in strict order, so one that is this much older than the newest may still be missing. */
const OVERLAP_MS = 5 * 60_000

/** The id after which to request messages. `newest`: the newest accepted one. */
export const overlapped = (newest: string): string => snowflakeAt(timeOf(newest) - OVERLAP_MS)
