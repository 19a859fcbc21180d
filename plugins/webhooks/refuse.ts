/**
 * Records refused deliveries: in the log, if they were read completely, and as events. Since anyone can send unsigned requests, their
 * events and writes are rate-limited.
 */
import { Fault, isFault } from '../../core/errors.ts'
import { newId } from '../../core/util/ids.ts'
import { openNotices } from '../../core/events/notices.ts'
import type { Context } from '../../core/plugin.ts'
import { openBuckets } from '../../core/util/token-buckets.ts'
import { emitOrLog } from '../shared/emit-or-log.ts'
import type { WebhookDelivery, WebhookSettings } from './contract.ts'
import { rejectionsOf } from './delivery-log.ts'
import type { Arrival, Hook } from './records.ts'

/** Burst of events per webhook; then one a minute. */
const NOTICES = 30
/** Rate limit of stored unsigned deliveries per webhook, since each is a durable write. The burst is the capacity of the log. */
const WRITTEN = { at_once: 1_000, per_minute: 60 }

export function refusalsOf(ctx: Context<WebhookSettings>) {
	const write = rejectionsOf(ctx.store)
	const notice = openNotices(NOTICES, ctx)
	const unsigned = openBuckets(WRITTEN)

	/** `delivery_id`: null if it is not in the log. */
	const report = (
		{ agent, webhook }: Hook,
		{ code, message }: Fault,
		source_ip: string,
		delivery_id: string | null,
	): void => {
		// A flood of unsigned requests must not hide problems of signed deliveries.
		const id = code === 'invalid_request' ? `${webhook.id} signed` : webhook.id
		notice(
			id,
			(untold) => {
				const about = { slug: webhook.slug, delivery_id, source_ip, message, ...untold }
				void emitOrLog(ctx, { event_type: 'webhook.rejected', payload: { ...about, code } }, agent.name)
				if (code !== 'signature_invalid') return
				const payload = { reason: 'webhook_signature', ...about }
				void emitOrLog(ctx, { event_type: 'security.violation', payload }, agent.name)
			},
			source_ip,
		)
	}

	return {
		report,
		/** Records a delivery, within the rate limit if it is unsigned. Returns the error to throw, even if recording fails. */
		async record(
			{ hook, source_ip, received_at }: Arrival,
			code: 'signature_invalid' | 'invalid_request',
			message: string,
		): Promise<Fault> {
			const { agent, webhook } = hook
			const fault = new Fault(code, message)
			if (code === 'signature_invalid' && unsigned.take(webhook.id) > 0) {
				report(hook, fault, source_ip, null)
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
				await write(agent.uid, webhook.id, delivery)
			} catch (error) {
				if (!isFault(error, 'not_found'))
					ctx.log.error({ err: error, slug: webhook.slug }, 'a refused delivery could not be recorded')
			}
			report(hook, fault, source_ip, delivery.delivery_id)
			return fault
		},
	}
}
