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

/** Writes refused deliveries, each over the oldest one of its webhook. Settles when durable. */
export function rejectionsOf(store: Store): (uid: string, id: string, delivery: WebhookDelivery) => Promise<void> {
	/** The next ring position of each webhook. */
	const places = new BoundedMap<string, Promise<{ next: number }>>(REMEMBERED)
	const placesOf = (uid: string, id: string): Promise<{ next: number }> => {
		const place = places.get(id) ?? nextPlace(store, uid, id).then((next) => ({ next }))
		places.set(id, place)
		place.catch(() => places.delete(id))
		return place
	}
	return async (uid, id, delivery) => {
		const ring = await placesOf(uid, id)
		const place = ring.next
		ring.next = (place + 1) % REJECTED
		await store.put(keys.rejected(uid, id, place), delivery)
	}
}

/** The position after the newest one. */
async function nextPlace(store: Store, uid: string, id: string): Promise<number> {
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
