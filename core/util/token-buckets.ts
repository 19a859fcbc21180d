interface Bucket {
	left: number
	/** When `left` was computed. */
	at: number
}

export const MINUTE_MS = 60_000
/** Above this number, full buckets are deleted once a minute. */
const BUCKETS = 4_096

/** A token bucket for each id. `at_once`: its size. `per_minute`: its refill. `clock`: milliseconds of the monotonic clock. */
export function openBuckets(
	{ at_once, per_minute }: { at_once: number; per_minute: number },
	clock: () => number = () => performance.now(),
) {
	const buckets = new Map<string, Bucket>()
	let sweepAt = 0

	const leftIn = ({ left, at }: Bucket, now: number): number =>
		Math.min(at_once, left + ((now - at) * per_minute) / MINUTE_MS)
	const sweep = (now: number): void => {
		sweepAt = now + MINUTE_MS
		for (const [id, bucket] of buckets) if (leftIn(bucket, now) >= at_once) buckets.delete(id)
	}
	const bucketOf = (id: string): Bucket => {
		const now = clock()
		if (buckets.size > BUCKETS && sweepAt <= now) sweep(now)
		const before = buckets.get(id)
		const bucket = { left: before ? leftIn(before, now) : at_once, at: now }
		buckets.set(id, bucket)
		return bucket
	}
	return {
		/** Takes a token and returns 0. Otherwise returns the milliseconds until one is available. */
		take(id: string): number {
			const bucket = bucketOf(id)
			if (bucket.left < 1) return ((1 - bucket.left) * MINUTE_MS) / per_minute
			bucket.left--
			return 0
		},
		/** Puts a token back. */
		release(id: string): void {
			const bucket = bucketOf(id)
			bucket.left = Math.min(at_once, bucket.left + 1)
		},
	}
}
