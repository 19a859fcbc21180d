/**
 * Limits signed deliveries, per minute and concurrently. Bursts are queued. Deliveries are refused only above the limit per minute
 * or the memory limit of the queue. Since the address is not secret and anyone can send to it, requests without a verified
 * signature have a separate limit.
 */
import { tryLater } from '../shared/try-later.ts'
import { openBuckets } from '../../core/util/token-buckets.ts'
import type { WebhookSettings } from './contract.ts'

/** A slot for one delivery. The caller must always call `leave`. */
export interface Admission {
	/** From 0, unique among the concurrent deliveries of the webhook. */
	slot: number
	leave(): void
}

interface DeliveryQueue {
	/** By the monotonic clock, in milliseconds. A minute begins with its first delivery. */
	minuteEnds: number
	/** Deliveries of this minute, queued ones included. */
	count: number
	slots: Set<number>
	waiting: { bytes: number; admit: (admission: Admission) => void }[]
}

const MINUTE_MS = 60_000
/** Limits of unverified requests of a webhook, as multiples of `per_minute`: per minute, and in a burst. */
const REQUESTS_FACTOR = 20
const BURST_FACTOR = 5
/** Memory limit of all queued deliveries. Each counts its body and an overhead. */
const QUEUE_BYTES = 64 * 1024 * 1024
const OVERHEAD_BYTES = 4096
/** Above this number of queues, idle ones are deleted once a minute. */
const QUEUE_LIMIT = 4_096

/** `id` in both methods: the webhook's. Both throw `rate_limited` or `unavailable`, with `retry-after`. */
export function openGate(
	limits: Pick<WebhookSettings, 'per_minute' | 'max_concurrent' | 'max_concurrent_per_webhook'>,
	clock: () => number = () => performance.now(),
	queueBytes: number = QUEUE_BYTES,
) {
	const { per_minute, max_concurrent, max_concurrent_per_webhook } = limits
	const requests = openBuckets({ at_once: BURST_FACTOR * per_minute, per_minute: REQUESTS_FACTOR * per_minute }, clock)
	const queues = new Map<string, DeliveryQueue>()
	/** Queues with waiting deliveries, in the order in which they get free slots. */
	const waitingQueues = new Set<DeliveryQueue>()
	let queuedBytes = 0
	let active = 0
	let sweepAt = 0

	const sweep = (now: number): void => {
		sweepAt = now + MINUTE_MS
		for (const [key, queue] of queues)
			if (queue.slots.size + queue.waiting.length === 0 && queue.minuteEnds <= now) queues.delete(key)
	}
	const queueOf = (id: string, now: number): DeliveryQueue => {
		if (queues.size > QUEUE_LIMIT && sweepAt <= now) sweep(now)
		const queue = queues.get(id) ?? { minuteEnds: 0, count: 0, slots: new Set(), waiting: [] }
		queues.set(id, queue)
		if (queue.minuteEnds <= now) Object.assign(queue, { minuteEnds: now + MINUTE_MS, count: 0 })
		return queue
	}
	const checkMinute = ({ count, minuteEnds }: DeliveryQueue, now: number): void => {
		if (count < per_minute) return
		const message = `this webhook accepts ${per_minute} deliveries a minute (webhooks.per_minute)`
		throw tryLater('rate_limited', message, (minuteEnds - now) / 1000)
	}
	const hasSlot = ({ slots }: DeliveryQueue): boolean =>
		active < max_concurrent && slots.size < max_concurrent_per_webhook

	const admitTo = (queue: DeliveryQueue): Admission => {
		let slot = 0
		while (queue.slots.has(slot)) slot++
		queue.slots.add(slot)
		active++
		let isActive = true
		return {
			slot,
			leave() {
				if (!isActive) return // another delivery may already have the slot
				isActive = false
				queue.slots.delete(slot)
				active--
				admitNext()
			},
		}
	}
	/** Round robin, so that one webhook's long queue does not delay the others. */
	const admitNext = (): void => {
		for (const queue of waitingQueues) {
			if (!hasSlot(queue)) continue
			waitingQueues.delete(queue)
			const next = queue.waiting.shift()
			if (queue.waiting.length > 0) waitingQueues.add(queue)
			if (!next) continue
			queuedBytes -= next.bytes
			return next.admit(admitTo(queue))
		}
	}

	return {
		/** Call it before reading the body. */
		check(id: string): void {
			const now = clock()
			checkMinute(queueOf(id, now), now)
			const ms = requests.take(id)
			if (ms === 0) return
			const message = `this webhook receives too many requests without a valid signature; it reads ${REQUESTS_FACTOR * per_minute} a minute`
			throw tryLater('rate_limited', message, ms / 1000)
		},
		/** For a delivery with a valid signature and a body of `bytes`. Settles when it is admitted. */
		async enter(id: string, bytes: number): Promise<Admission> {
			requests.release(id)
			const now = clock()
			const queue = queueOf(id, now)
			checkMinute(queue, now)
			if (queue.waiting.length === 0 && hasSlot(queue)) {
				queue.count++
				return admitTo(queue)
			}
			const cost = bytes + OVERHEAD_BYTES
			if (queuedBytes + cost > queueBytes)
				throw tryLater('unavailable', 'too many deliveries are waiting; send this one again later', 1)
			queue.count++
			queuedBytes += cost
			const { promise, resolve } = Promise.withResolvers<Admission>()
			queue.waiting.push({ bytes: cost, admit: resolve })
			waitingQueues.add(queue)
			return promise
		},
	}
}
