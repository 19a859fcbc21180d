/**
 * Limits signed deliveries per minute, and concurrently. A burst waits in a queue; only deliveries above the
 * minute's limit, or above the memory for queued bodies, are refused. An address is not a secret and anyone can send to it, so
 * requests without a verified signature have a limit of their own.
 */
import { tryLater } from '../shared/try-later.ts'
import { openBuckets } from '../../core/util/token-buckets.ts'
import type { WebhookSettings } from './contract.ts'

/** The caller must leave it in any case. */
export interface Admission {
	/** From 0; no other delivery of the webhook has it at the same time. */
	slot: number
	leave(): void
}

interface DeliveryQueue {
	/** Milliseconds of the monotonic clock; a minute begins with its first delivery. */
	minuteEnds: number
	/** Deliveries of this minute, queued ones included. */
	taken: number
	slots: Set<number>
	line: { bytes: number; admit: (admission: Admission) => void }[]
}

const MINUTE_MS = 60_000
/** Number of requests that a webhook reads for each delivery that it may accept: per minute, and in a burst. */
const REQUESTS = 20
const REQUESTS_AT_ONCE = 5
/** Memory limit of all queued deliveries. Each counts its body and an overhead. */
const LINE_BYTES = 64 * 1024 * 1024
const OVERHEAD_BYTES = 4096
/** Above this number, idle webhooks are deleted from the map, once a minute. */
const QUEUES = 4_096

/** `id`: the webhook's. Both methods throw `rate_limited` or `unavailable`, with `retry-after`. */
export function openGate(
	limits: Pick<WebhookSettings, 'per_minute' | 'max_concurrent' | 'max_concurrent_per_webhook'>,
	clock: () => number = () => performance.now(),
	lineBytes: number = LINE_BYTES,
) {
	const { per_minute, max_concurrent, max_concurrent_per_webhook } = limits
	const requests = openBuckets({ at_once: REQUESTS_AT_ONCE * per_minute, per_minute: REQUESTS * per_minute }, clock)
	const queues = new Map<string, DeliveryQueue>()
	/** Queues with waiting deliveries, in the order in which they get the next free slot. */
	const waiting = new Set<DeliveryQueue>()
	let bytesInLine = 0
	let inside = 0
	let sweepAt = 0

	const sweep = (now: number): void => {
		sweepAt = now + MINUTE_MS
		for (const [key, queue] of queues)
			if (queue.slots.size + queue.line.length === 0 && queue.minuteEnds <= now) queues.delete(key)
	}
	const queueOf = (id: string, now: number): DeliveryQueue => {
		if (queues.size > QUEUES && sweepAt <= now) sweep(now)
		const queue = queues.get(id) ?? { minuteEnds: 0, taken: 0, slots: new Set(), line: [] }
		queues.set(id, queue)
		if (queue.minuteEnds <= now) Object.assign(queue, { minuteEnds: now + MINUTE_MS, taken: 0 })
		return queue
	}
	const checkMinute = ({ taken, minuteEnds }: DeliveryQueue, now: number): void => {
		if (taken < per_minute) return
		const message = `this webhook accepts ${per_minute} deliveries a minute (webhooks.per_minute)`
		throw tryLater('rate_limited', message, (minuteEnds - now) / 1000)
	}
	const hasSlot = ({ slots }: DeliveryQueue): boolean =>
		inside < max_concurrent && slots.size < max_concurrent_per_webhook

	const admitTo = (queue: DeliveryQueue): Admission => {
		let slot = 0
		while (queue.slots.has(slot)) slot++
		queue.slots.add(slot)
		inside++
		let isInside = true
		return {
			slot,
			leave() {
				if (!isInside) return // another delivery may have the slot
				isInside = false
				queue.slots.delete(slot)
				inside--
				admitNext()
			},
		}
	}
	/** Round robin, so that one webhook's long queue does not delay the others. */
	const admitNext = (): void => {
		for (const queue of waiting) {
			if (!hasSlot(queue)) continue
			waiting.delete(queue)
			const next = queue.line.shift()
			if (queue.line.length > 0) waiting.add(queue)
			if (!next) continue
			bytesInLine -= next.bytes
			return next.admit(admitTo(queue))
		}
	}

	return {
		/** Before any of the body is read. */
		check(id: string): void {
			const now = clock()
			checkMinute(queueOf(id, now), now)
			const ms = requests.take(id)
			if (ms === 0) return
			const message = `too many requests without a valid signature come to this webhook; it reads ${REQUESTS * per_minute} a minute`
			throw tryLater('rate_limited', message, ms / 1000)
		},
		/** For a delivery with a valid signature and a body of `bytes`. Settles when it is admitted. */
		async enter(id: string, bytes: number): Promise<Admission> {
			requests.release(id)
			const now = clock()
			const queue = queueOf(id, now)
			checkMinute(queue, now)
			if (queue.line.length === 0 && hasSlot(queue)) {
				queue.taken++
				return admitTo(queue)
			}
			const cost = bytes + OVERHEAD_BYTES
			if (bytesInLine + cost > lineBytes)
				throw tryLater('unavailable', 'too many deliveries are waiting; send this one again later', 1)
			queue.taken++
			bytesInLine += cost
			const { promise, resolve } = Promise.withResolvers<Admission>()
			queue.line.push({ bytes: cost, admit: resolve })
			waiting.add(queue)
			return promise
		},
	}
}
