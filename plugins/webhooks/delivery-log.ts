/** The log of deliveries: accepted ones by id, refused ones in a ring buffer of 1,000 per webhook. */
import type { Store } from '../../core/store/ports.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import type { WebhookDelivery } from './contract.ts'
import { keys } from './records.ts'
import type { AcceptedRecord, Counter } from './records.ts'

/** Refused deliveries kept per webhook: anyone with the token can cause any number of them. */
const REJECTED = 1_000
/** Webhooks whose ring position is cached. */
const REMEMBERED = 1_024

/** Newest first. */
export async function deliveriesOf(
	store: Store,
	uid: string,
	id: string,
	{ limit, before }: { limit: number; before?: string },
): Promise<WebhookDelivery[]> {
	const after = before === undefined ? {} : { after: keys.accepted(uid, id, before) }
	const range = store.list<AcceptedRecord>(keys.allAccepted(uid, id), { reverse: true, limit, ...after })
	const accepted = await Array.fromAsync(range, ({ value }): WebhookDelivery => {
		const { seen: _, ...shown } = value
		return shown
	})
	const ring = await Array.fromAsync(store.list<WebhookDelivery>(keys.allRejected(uid, id)), ({ value }) => value)
	const rejected = ring.filter(({ delivery_id }) => before === undefined || delivery_id < before)
	return [...accepted, ...rejected].toSorted(newestFirst).slice(0, limit)
}

/** The number of accepted deliveries, and the time of the latest. */
export async function totalsOf(store: Store, uid: string, id: string): Promise<{ count: number; last: string | null }> {
	let count = 0
	let last: string | null = null
	for await (const { value } of store.list<Counter>(keys.counts(uid, id))) {
		count += value.count
		if (last === null || value.last > last) last = value.last
	}
	return { count, last }
}

/** Returns a function that stores a refused delivery, overwriting the oldest one of its webhook. Durable when it settles. */
export function rejectionsOf(store: Store): (uid: string, id: string, delivery: WebhookDelivery) => Promise<void> {
	/** The next ring position of each webhook. */
	const positions = new BoundedMap<string, Promise<{ next: number }>>(REMEMBERED)
	const positionOf = (uid: string, id: string): Promise<{ next: number }> => {
		const position = positions.get(id) ?? nextPosition(store, uid, id).then((next) => ({ next }))
		positions.set(id, position)
		position.catch(() => positions.delete(id))
		return position
	}
	return async (uid, id, delivery) => {
		const ring = await positionOf(uid, id)
		const position = ring.next
		ring.next = (position + 1) % REJECTED
		await store.put(keys.rejected(uid, id, position), delivery)
	}
}

/** The position after the newest record. */
async function nextPosition(store: Store, uid: string, id: string): Promise<number> {
	let newest = ''
	let next = 0
	for await (const { key, value } of store.list<WebhookDelivery>(keys.allRejected(uid, id))) {
		if (value.delivery_id < newest) continue
		newest = value.delivery_id
		next = (Number(key.at(-1)) + 1) % REJECTED
	}
	return next
}

function newestFirst(a: WebhookDelivery, b: WebhookDelivery): number {
	return a.delivery_id < b.delivery_id ? 1 : -1
}
