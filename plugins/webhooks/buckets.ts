/** So many at once and so many more in a minute, for each webhook: what is used up comes back bit by bit. */
export interface Buckets {
	/** Takes one: 0. Otherwise the milliseconds until there is one. */
	take(id: string): number
	giveBack(id: string): void
}

interface Bucket {
	left: number
	/** Milliseconds of the monotonic clock. */
	at: number
}

const MINUTE_MS = 60_000
/** Above that the full ones are forgotten, once a minute. */
const BUCKETS = 4_096

export function openBuckets(
	{ at_once, per_minute }: { at_once: number; per_minute: number },
	clock: () => number = () => performance.now(),
): Buckets {
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
		take(id) {
			const bucket = bucketOf(id)
			if (bucket.left < 1) return ((1 - bucket.left) * MINUTE_MS) / per_minute
			bucket.left--
			return 0
		},
		giveBack(id) {
			const bucket = bucketOf(id)
			bucket.left = Math.min(at_once, bucket.left + 1)
		},
	}
}
