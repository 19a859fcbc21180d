/** Adding and removing webhooks: each is one commit with the agent's ledger, so that the limit holds. */
import { Fault } from '../../core/errors.ts'
import type { AgentRef } from '../../core/plugin.ts'
import { change } from '../../core/store/change.ts'
import type { Entry, Op, Store } from '../../core/store/ports.ts'
import { keys } from './records.ts'
import type { WebhookCount, WebhookRecord } from './records.ts'

/** Throws `conflict` if the slug is taken, or if the agent has reached its limit of webhooks. */
export async function addRecord(
	store: Store,
	{ name, uid }: AgentRef,
	record: WebhookRecord,
	limit: number,
): Promise<void> {
	const key = keys.webhook(uid, record.slug)
	await changeCount(store, uid, async (count) => {
		if (await store.get(key)) throw new Fault('conflict', `agent "${name}" has a webhook "${record.slug}" already`)
		if (count >= limit) {
			throw new Fault(
				'conflict',
				`agent "${name}" has ${count} webhooks, which is the limit (webhooks.max_per_agent); delete one first`,
			)
		}
		return { op: { key, value: record, expect: null }, count: count + 1, result: undefined }
	})
}

/** Removes the webhook that `find` returns; `find` may be called several times. Returns its record. */
export function removeRecord(
	store: Store,
	{ uid }: AgentRef,
	find: () => Promise<Entry<WebhookRecord>>,
): Promise<WebhookRecord> {
	return changeCount(store, uid, async (count) => {
		const { key, value, rev } = await find()
		return { op: { key, value: undefined, expect: rev }, count: Math.max(0, count - 1), result: value }
	})
}

function changeCount<T>(
	store: Store,
	uid: string,
	decide: (count: number) => Promise<{ op: Op; count: number; result: T }>,
): Promise<T> {
	const key = keys.ledger(uid)
	return change(store, key[0], async () => {
		const ledger = await store.get<WebhookCount>(key)
		const { op, count, result } = await decide(ledger?.value.count ?? 0)
		const value: WebhookCount = { count }
		return { ops: [op, { key, value, expect: ledger?.rev ?? null }], result }
	})
}
