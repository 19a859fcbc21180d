/**
 * Limits signed deliveries, per minute and concurrently. Bursts are queued. Deliveries are refused only above the limit per minute
 * or the memory limit of the queue. Since the address is not secret and anyone can send to it, requests without a verified
 * signature have a separate limit.
 */
import { tryLater } from '../shared/try-later.ts'
import { FairQueue } from '../../core/util/fair-queue.ts'
import { openBuckets } from '../../core/util/token-buckets.ts'
import type { WebhookSettings } from './contract.ts'

/** A slot for one delivery. The caller must always call `leave`. */
export interface Admission {
	/** From 0, unique among the concurrent deliveries of the webhook. */
	slot: number
	leave(): void
}

/** The deliveries of one webhook. */
interface Deliveries {
	/** By the monotonic clock, in milliseconds. A minute begins with its first delivery. */
	minuteEnds: number
	/** Deliveries of this minute, queued ones included. */
	count: number
	/** Of concurrent deliveries. */
	slots: Set<number>
}

const MINUTE_MS = 60_000
/** Limits of unverified requests of a webhook, as multiples of `per_minute`: per minute, and in a burst. */
const REQUESTS_FACTOR = 20
const BURST_FACTOR = 5
/** Memory limit of all queued deliveries. Each counts its body and an overhead. */
const QUEUE_BYTES = 64 * 1024 * 1024
const OVERHEAD_BYTES = 4096
/** Above this number of webhooks, idle ones are forgotten once a minute. */
const WEBHOOKS_LIMIT = 4_096

/** `id` in both methods: the webhook's. Both throw `rate_limited` or `unavailable`, with `retry-after`. */
export function openGate(
	limits: Pick<WebhookSettings, 'per_minute' | 'max_concurrent' | 'max_concurrent_per_webhook'>,
	clock: () => number = () => performance.now(),
	queueBytes: number = QUEUE_BYTES,
) {
	const { per_minute, max_concurrent, max_concurrent_per_webhook } = limits
	const requests = openBuckets({ at_once: BURST_FACTOR * per_minute, per_minute: REQUESTS_FACTOR * per_minute }, clock)
	const webhooks = new Map<string, Deliveries>()
	/** By webhook; they take turns, so that one webhook's long queue does not delay the others. */
	const queue = new FairQueue<{ bytes: number; admit: () => void }>()
	let queuedBytes = 0
	let active = 0
	let sweepAt = 0

	const sweep = (now: number): void => {
		sweepAt = now + MINUTE_MS
		for (const [id, { slots, minuteEnds }] of webhooks)
			if (slots.size + queue.sizeOf(id) === 0 && minuteEnds <= now) webhooks.delete(id)
	}
	const deliveriesOf = (id: string, now: number): Deliveries => {
		if (webhooks.size > WEBHOOKS_LIMIT && sweepAt <= now) sweep(now)
		const deliveries = webhooks.get(id) ?? { minuteEnds: 0, count: 0, slots: new Set() }
		webhooks.set(id, deliveries)
		if (deliveries.minuteEnds <= now) Object.assign(deliveries, { minuteEnds: now + MINUTE_MS, count: 0 })
		return deliveries
	}
	const checkMinute = ({ count, minuteEnds }: Deliveries, now: number): void => {
		if (count < per_minute) return
		const message = `this webhook accepts ${per_minute} deliveries a minute (webhooks.per_minute)`
		throw tryLater('rate_limited', message, (minuteEnds - now) / 1000)
	}
	const hasSlot = (id: string): boolean =>
		active < max_concurrent && (webhooks.get(id)?.slots.size ?? 0) < max_concurrent_per_webhook

	const admit = ({ slots }: Deliveries): Admission => {
		let slot = 0
		while (slots.has(slot)) slot++
		slots.add(slot)
		active++
		let isActive = true
		return {
			slot,
			leave() {
				if (!isActive) return // another delivery may already have the slot
				isActive = false
				slots.delete(slot)
				active--
				const next = queue.next(hasSlot)
				queuedBytes -= next?.bytes ?? 0
				next?.admit()
			},
		}
	}

	return {
		/** Call it before reading the body. */
		check(id: string): void {
			const now = clock()
			checkMinute(deliveriesOf(id, now), now)
			const ms = requests.take(id)
			if (ms === 0) return
			const message = `this webhook receives too many requests without a valid signature; it reads ${REQUESTS_FACTOR * per_minute} a minute`
			throw tryLater('rate_limited', message, ms / 1000)
		},
		/** For a delivery with a valid signature and a body of `bytes`. Settles when it is admitted. */
		async enter(id: string, bytes: number): Promise<Admission> {
			requests.release(id)
			const now = clock()
			const deliveries = deliveriesOf(id, now)
			checkMinute(deliveries, now)
			if (queue.sizeOf(id) === 0 && hasSlot(id)) {
				deliveries.count++
				return admit(deliveries)
			}
			const cost = bytes + OVERHEAD_BYTES
			if (queuedBytes + cost > queueBytes)
				throw tryLater('unavailable', 'too many deliveries are waiting; send this one again later', 1)
			deliveries.count++
			queuedBytes += cost
			return new Promise((resolve) => queue.add(id, { bytes: cost, admit: () => resolve(admit(deliveries)) }))
		},
	}
}
