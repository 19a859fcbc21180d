/** Who may come in: so many deliveries of a webhook in a minute, and so many at a time. Before anything of a body is read. */
import { Fault } from '../../core/errors.ts'
import type { WebhookSettings } from './contract.ts'

export interface Gate {
	/** Throws `rate_limited` or `unavailable`, with `retry-after`. `id`: the webhook's. */
	enter(id: string): Place
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
}

const MINUTE_MS = 60_000
/** Above that the idle ones are forgotten, once a minute. */
const LANES = 4_096

export function openGate(limits: Limits, clock: () => number = () => performance.now()): Gate {
	const lanes = new Map<string, Lane>()
	let inside = 0
	let sweepAt = 0

	const sweep = (now: number): void => {
		sweepAt = now + MINUTE_MS
		for (const [key, { slots, minuteEnds }] of lanes) if (slots.size === 0 && minuteEnds <= now) lanes.delete(key)
	}
	const laneOf = (id: string, now: number): Lane => {
		if (lanes.size > LANES && sweepAt <= now) sweep(now)
		const lane = lanes.get(id) ?? { minuteEnds: 0, taken: 0, slots: new Set() }
		lanes.set(id, lane)
		if (lane.minuteEnds <= now) Object.assign(lane, { minuteEnds: now + MINUTE_MS, taken: 0 })
		return lane
	}

	return {
		enter(id) {
			const now = clock()
			const lane = laneOf(id, now)
			if (lane.taken >= limits.per_minute) {
				throw refusal(
					'rate_limited',
					`this webhook takes ${limits.per_minute} deliveries a minute (webhooks.per_minute)`,
					Math.ceil((lane.minuteEnds - now) / 1000),
				)
			}
			lane.taken++
			if (lane.slots.size >= limits.max_concurrent_per_webhook) {
				const setting = `webhooks.max_concurrent_per_webhook: ${limits.max_concurrent_per_webhook}`
				throw refusal('rate_limited', `this webhook is busy with other deliveries (${setting})`, 1)
			}
			if (inside >= limits.max_concurrent) {
				const setting = `webhooks.max_concurrent: ${limits.max_concurrent}`
				throw refusal('unavailable', `the gateway is busy with other deliveries (${setting})`, 1)
			}
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

function refusal(code: 'rate_limited' | 'unavailable', message: string, seconds: number): Fault {
	return new Fault(code, message, { headers: { 'retry-after': String(Math.max(1, seconds)) } })
}
