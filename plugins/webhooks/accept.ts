/** Starts the run of a valid delivery. The run, the delivery, the counter and the duplicate marker are one commit. */
import { isFault } from '../../core/errors.ts'
import { newId } from '../../core/util/ids.ts'
import type { Context } from '../../core/plugin.ts'
import { causedBy } from '../../core/util/context.ts'
import type { Op, Store } from '../../core/store/ports.ts'
import type { AcceptedDelivery, WebhookSettings } from './contract.ts'
import { promptFor } from './prompt.ts'
import { keys, sha256 } from './records.ts'
import type { AcceptedRecord, Arrival, Counter, SeenDelivery, WebhookRecord } from './records.ts'
import { unknownToken } from './unknown-tokens.ts'

export interface DeliveryContent {
	/** JSON, as received. */
	payload: string
	/** The event type, as the sender names it. */
	event: string | undefined
	/** The sender's id of this delivery. */
	sender_id: string | undefined
	/** See `Counter`. */
	slot: number
}

/** Throws `not_found` if the webhook was rotated or deleted, or its agent was deleted; otherwise what `Runs.start` throws. */
export async function accept(
	ctx: Context<WebhookSettings>,
	arrival: Arrival,
	{ payload, event, sender_id, slot }: DeliveryContent,
): Promise<AcceptedDelivery> {
	const { agent, webhook } = arrival.hook
	const delivery_id = newId()
	const seen = sender_id === undefined ? undefined : sha256(sender_id)
	try {
		await causedBy({ actor: { kind: 'webhook', id: webhook.slug } }, () =>
			ctx.use('runs').start(agent, {
				prompt: promptFor(webhook.slug, payload, event, webhook.instructions),
				trigger: 'webhook',
				conversation: `webhook:${delivery_id}`,
				destination: webhook.destination,
				origin: { event_type: 'webhook.accepted', payload: { slug: webhook.slug, delivery_id } },
				also: (run_id) => opsOf(ctx.store, arrival, { delivery_id, run_id, seen, slot }),
			}),
		)
		return { status: 'accepted', delivery_id }
	} catch (error) {
		if (error instanceof Repeated) return { status: 'accepted', delivery_id: error.delivery_id }
		throw isFault(error, 'not_found') ? unknownToken() : error // the agent was deleted
	}
}

/** The sender sent this delivery before. */
class Repeated extends Error {
	readonly delivery_id: string
	constructor(delivery_id: string) {
		super(`repeats ${delivery_id}`)
		this.delivery_id = delivery_id
	}
}

async function opsOf(
	store: Store,
	{ hook, source_ip, received_at }: Arrival,
	{ delivery_id, run_id, seen, slot }: { delivery_id: string; run_id: string; seen: string | undefined; slot: number },
): Promise<Op[]> {
	const { id, slug, token_hash } = hook.webhook
	const { uid } = hook.agent
	const present = await store.getShared<WebhookRecord>(keys.webhook(uid, slug))
	if (present?.value.token_hash !== token_hash) throw unknownToken()
	const place = seen === undefined ? undefined : keys.seen(uid, id, seen)
	const first = place && (await store.get<SeenDelivery>(place))
	if (first) throw new Repeated(first.value.delivery_id)
	const counter = await store.get<Counter>(keys.count(uid, id, slot))
	const delivery: AcceptedRecord = {
		delivery_id,
		webhook_slug: slug,
		source_ip,
		signature_valid: true,
		run_id,
		status_code: 200,
		error: null,
		received_at,
		...(seen !== undefined && { seen }),
	}
	const counted: Counter = { count: (counter?.value.count ?? 0) + 1, last: received_at }
	return [
		{ key: keys.accepted(uid, id, delivery_id), value: delivery },
		{ key: keys.count(uid, id, slot), value: counted, expect: counter?.rev ?? null },
		...(place ? [{ key: place, value: { delivery_id } satisfies SeenDelivery, expect: null }] : []),
	]
}
