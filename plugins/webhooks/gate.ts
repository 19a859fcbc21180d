/**
 * Who may come in. An address is no secret: whoever knows it can send anything, and only a signature makes a delivery of
 * it, which shows when the body has been read. So what is not known yet to be signed has limits of its own, and takes
 * nothing from what is: neither of the minute nor of the places.
 */
import Boom from '@hapi/boom'
import { Fault } from '../../core/errors.ts'
import { openBuckets } from './buckets.ts'
import type { WebhookSettings } from './contract.ts'

/** `id`: the webhook's. What is thrown is `rate_limited` or `unavailable`, with `retry-after`. */
export interface Gate {
	/** Before anything of a body is read. */
	check(id: string): void
	/**
	 * For a body that is not there yet; `brought`: how many bytes of it are. Where the places are taken, one that takes long
	 * gives way, or one that has brought less: what is sent to keep places taken costs its sender as much as a delivery.
	 */
	wait(id: string, brought: () => number): Wait
	/** For a delivery whose signature is right. */
	enter(id: string): Place
}

/** To be left in any case. */
export interface Wait {
	/** Aborts where it must give way; the reason is the sender's answer. */
	signal: AbortSignal
	leave(): void
}

/** To be left in any case. */
export interface Place {
	/** From 0; no other delivery of the webhook has it meanwhile. */
	slot: number
	leave(): void
}

type Limits = Pick<WebhookSettings, 'per_minute' | 'max_concurrent' | 'max_concurrent_per_webhook'>

interface Lane {
	/** Milliseconds of the monotonic clock; a minute begins with its first delivery. */
	minuteEnds: number
	taken: number
	slots: Set<number>
	waiting: Set<Waiter>
}

interface Waiter {
	lane: Lane
	since: number
	brought(): number
	giveWay(): void
}

const MINUTE_MS = 60_000
/** Requests that a webhook looks at, for one delivery that it takes: in a minute, and at once. */
const REQUESTS = 20
const REQUESTS_AT_ONCE = 5
/** A body that takes longer gives way where others wait. */
const SLOW_MS = 1_000
/** Above that the idle ones are forgotten, once a minute. */
const LANES = 4_096

export function openGate(limits: Limits, clock: () => number = () => performance.now()): Gate {
	const { per_minute, max_concurrent, max_concurrent_per_webhook } = limits
	const requests = openBuckets({ at_once: REQUESTS_AT_ONCE * per_minute, per_minute: REQUESTS * per_minute }, clock)
	const lanes = new Map<string, Lane>()
	/** Sets keep the order in which they were filled: the first has waited longest. */
	const waiting = new Set<Waiter>()
	let inside = 0
	let sweepAt = 0

	const sweep = (now: number): void => {
		sweepAt = now + MINUTE_MS
		for (const [key, lane] of lanes)
			if (lane.slots.size + lane.waiting.size === 0 && lane.minuteEnds <= now) lanes.delete(key)
	}
	const laneOf = (id: string, now: number): Lane => {
		if (lanes.size > LANES && sweepAt <= now) sweep(now)
		const lane = lanes.get(id) ?? { minuteEnds: 0, taken: 0, slots: new Set(), waiting: new Set() }
		lanes.set(id, lane)
		if (lane.minuteEnds <= now) Object.assign(lane, { minuteEnds: now + MINUTE_MS, taken: 0 })
		return lane
	}
	const mustHaveRoom = ({ taken, minuteEnds, slots }: Lane, now: number): void => {
		if (taken >= per_minute) {
			const message = `this webhook takes ${per_minute} deliveries a minute (webhooks.per_minute)`
			throw refusal('rate_limited', message, minuteEnds - now)
		}
		if (slots.size >= max_concurrent_per_webhook) throw busy('is busy with other deliveries')
		if (inside >= max_concurrent) throw allBusy('is busy with other deliveries')
	}
	const busy = (why: string): Fault =>
		refusal('rate_limited', `this webhook ${why} (webhooks.max_concurrent_per_webhook: ${max_concurrent_per_webhook})`)
	const allBusy = (why: string): Fault =>
		refusal('unavailable', `the gateway ${why} (webhooks.max_concurrent: ${max_concurrent})`)

	const makeRoom = (lane: Lane, brought: number, now: number): void => {
		const isFull = lane.waiting.size >= max_concurrent_per_webhook
		// Nobody has more than are free: however many webhooks are besieged, the next one finds a place.
		const isShort = lane.waiting.size >= max_concurrent - waiting.size
		if (!isFull && !isShort) return
		const richer = (): Waiter[] => [...waiting].filter((one) => one.lane.waiting.size > lane.waiting.size)
		const other = yielding(lane.waiting, brought, now) ?? (isFull ? undefined : yielding(richer(), brought, now))
		if (other) return other.giveWay()
		throw isFull ? busy('waits for other bodies') : allBusy('waits for other bodies')
	}

	return {
		check(id) {
			const now = clock()
			mustHaveRoom(laneOf(id, now), now)
			const ms = requests.take(id)
			if (ms === 0) return
			const message = `too many requests without a valid signature come to this webhook; it looks at ${REQUESTS * per_minute} a minute`
			throw refusal('rate_limited', message, ms)
		},
		wait(id, brought) {
			const now = clock()
			const lane = laneOf(id, now)
			makeRoom(lane, brought(), now)
			const controller = new AbortController()
			const leave = (): void => {
				lane.waiting.delete(waiter)
				waiting.delete(waiter)
			}
			const giveWay = (): void => {
				leave()
				controller.abort(Boom.clientTimeout('the body came too slowly while others waited for their turn'))
			}
			const waiter: Waiter = { lane, since: now, brought, giveWay }
			lane.waiting.add(waiter)
			waiting.add(waiter)
			return { signal: controller.signal, leave }
		},
		enter(id) {
			requests.giveBack(id)
			const now = clock()
			const lane = laneOf(id, now)
			mustHaveRoom(lane, now)
			lane.taken++
			let slot = 0
			while (lane.slots.has(slot)) slot++
			lane.slots.add(slot)
			inside++
			return {
				slot,
				leave() {
					if (lane.slots.delete(slot)) inside--
				},
			}
		},
	}
}

/** Whoever has waited longest, where that is long; otherwise whoever has brought least, where that is less. Oldest first. */
function yielding(among: Iterable<Waiter>, brought: number, now: number): Waiter | undefined {
	let least: Waiter | undefined
	for (const waiter of among) {
		if (now - waiter.since > SLOW_MS) return waiter
		if (waiter.brought() < (least?.brought() ?? brought)) least = waiter
	}
	return least
}

function refusal(code: 'rate_limited' | 'unavailable', message: string, ms = 0): Fault {
	return new Fault(code, message, { headers: { 'retry-after': String(Math.max(1, Math.ceil(ms / 1000))) } })
}
