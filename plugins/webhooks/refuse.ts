/**
 * What becomes of a delivery that is refused: the log has it where it was read whole, and events tell of it. What is not
 * signed comes from anybody: of that, no more is told or written than the machine can bear.
 */
import { Fault } from '../../core/errors.ts'
import { newId } from '../../core/ids.ts'
import type { Context } from '../../core/plugin.ts'
import type {} from '../agents/contract.ts'
import type { Arrival, Hook } from './arrival.ts'
import { openBuckets } from './buckets.ts'
import type { WebhookDelivery, WebhookSettings } from './contract.ts'
import { rejectionsOf } from './delivery-log.ts'
import { openNotices } from './notices.ts'

export interface Refusals {
	/**
	 * Writes it down, unless too many without a signature were, and answers with what to throw: the sender hears of it also
	 * where that fails.
	 */
	record(arrival: Arrival, code: 'signature_invalid' | 'invalid_request', message: string): Promise<Fault>
	/** `delivery_id`: null for one that is not in the log. */
	tell(hook: Hook, fault: Fault, source_ip: string, delivery_id: string | null): void
}

/** Of those without a valid signature, of one webhook. At once, as many as the log keeps; each is a durable write. */
const WRITTEN = { at_once: 1_000, per_minute: 60 }

export function refusalsOf({ store, log, emit, use }: Context<WebhookSettings>): Refusals {
	const write = rejectionsOf(store)
	const { notice } = openNotices()
	const unsigned = openBuckets(WRITTEN)

	const tell: Refusals['tell'] = ({ agent, webhook }, { code, message }, source_ip, delivery_id) =>
		// A flood without signatures must not hide what is wrong with deliveries that have one.
		notice(code === 'invalid_request' ? `${webhook.id} signed` : webhook.id, (untold) => {
			const about = { slug: webhook.slug, delivery_id, source_ip, message, ...untold }
			const told = [emit({ event_type: 'webhook.rejected', payload: { ...about, code } }, agent.name)]
			if (code === 'signature_invalid') {
				const payload = { kind: 'webhook_signature', ...about }
				told.push(emit({ event_type: 'security.violation', payload }, agent.name))
			}
			Promise.all(told).catch((error: unknown) => log.error({ err: error }, 'an event was not written'))
		})

	return {
		tell,
		async record({ hook, source_ip, received_at }, code, message) {
			const { agent, webhook } = hook
			const fault = new Fault(code, message)
			if (code === 'signature_invalid' && unsigned.take(webhook.id) > 0) {
				tell(hook, fault, source_ip, null)
				return fault
			}
			const delivery: WebhookDelivery = {
				delivery_id: newId(),
				webhook_slug: webhook.slug,
				source_ip,
				signature_valid: code !== 'signature_invalid',
				run_id: null,
				status_code: fault.status,
				error: message,
				received_at,
			}
			try {
				const key = await write(agent.uid, webhook.id, delivery)
				// One that was deleted meanwhile may have been swept already.
				if ((await use('agents').find(agent.name))?.uid !== agent.uid) await store.delete(key)
			} catch (error) {
				log.error({ err: error, slug: webhook.slug }, 'a refused delivery could not be recorded')
			}
			tell(hook, fault, source_ip, delivery.delivery_id)
			return fault
		},
	}
}
