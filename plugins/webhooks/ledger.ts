/** Adds and removes webhooks, each in one commit with the agent's ledger, which enforces the limit. */
import { Fault } from '../../core/errors.ts'
import type { AgentRef } from '../../core/plugin.ts'
import { changeRecord } from '../../core/store/change.ts'
import type { Entry, Store } from '../../core/store/ports.ts'
import { keys } from './records.ts'
import type { WebhookCount, WebhookRecord } from './records.ts'

const none: WebhookCount = { count: 0 }

/** Throws `conflict` if the slug is taken, or if the agent has reached its limit of webhooks. */
export async function addRecord(
	store: Store,
	{ name, uid }: AgentRef,
	record: WebhookRecord,
	limit: number,
): Promise<void> {
	const key = keys.webhook(uid, record.slug)
	await changeRecord<WebhookCount, undefined>(store, keys.ledger(uid), async ({ count } = none) => {
		if (await store.get(key)) throw new Fault('conflict', `agent "${name}" has a webhook "${record.slug}" already`)
		if (count >= limit) {
			throw new Fault(
				'conflict',
				`agent "${name}" has ${count} webhooks, which is the limit (webhooks.max_per_agent); delete one first`,
			)
		}
		return { next: { count: count + 1 }, ops: [{ key, value: record, expect: null }], result: undefined }
	})
}

/** Removes the webhook that `find` returns; `find` may be called several times. Returns its record. */
export function removeRecord(
	store: Store,
	{ uid }: AgentRef,
	find: () => Promise<Entry<WebhookRecord>>,
): Promise<WebhookRecord> {
	return changeRecord<WebhookCount, WebhookRecord>(store, keys.ledger(uid), async ({ count } = none) => {
		const { key, value, rev } = await find()
		return { next: { count: Math.max(0, count - 1) }, ops: [{ key, value: undefined, expect: rev }], result: value }
	})
}
