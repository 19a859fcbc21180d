/** Webhooks that come and go: each change is one commit with the agent's ledger, so that the limit holds. */
import { Fault, isFault } from '../../core/errors.ts'
import type { AgentRef } from '../../core/plugin.ts'
import type { Entry, Op, Store } from '../../core/store/ports.ts'
import { keys, scopeOf } from './records.ts'
import type { Ledger, WebhookRecord } from './records.ts'

const ATTEMPTS = 100

/** Throws `conflict` where there is one of that slug, or as many as there may be. */
export async function addRecord(
	store: Store,
	{ name, uid }: AgentRef,
	record: WebhookRecord,
	limit: number,
): Promise<void> {
	const key = keys.webhook(uid, record.slug)
	await change(store, uid, async (count) => {
		if (await store.get(key)) throw new Fault('conflict', `agent "${name}" has a webhook "${record.slug}" already`)
		if (count >= limit) {
			throw new Fault(
				'conflict',
				`agent "${name}" has ${count} webhooks, as many as it may (webhooks.max_per_agent); delete one first`,
			)
		}
		return { op: { key, value: record, expect: null }, count: count + 1 }
	})
}

/** False where it is not as `entry` says any more. */
export async function removeRecord(store: Store, { uid }: AgentRef, entry: Entry<WebhookRecord>): Promise<boolean> {
	return change(store, uid, async (count) => {
		const present = await store.get(entry.key)
		if (present?.rev !== entry.rev) return null
		return { op: { key: entry.key, value: undefined, expect: entry.rev }, count: Math.max(0, count - 1) }
	})
}

/** `build` answers null for: leave it. False then. */
async function change(
	store: Store,
	uid: string,
	build: (count: number) => Promise<{ op: Op; count: number } | null>,
): Promise<boolean> {
	const key = keys.ledger(uid)
	for (let attempt = 1; ; attempt++) {
		const ledger = await store.get<Ledger>(key)
		const built = await build(ledger?.value.count ?? 0)
		if (!built) return false
		const next: Ledger = { count: built.count }
		try {
			await store.commit(scopeOf(uid), [built.op, { key, value: next, expect: ledger?.rev ?? null }])
			return true
		} catch (error) {
			if (!isFault(error, 'conflict') || attempt === ATTEMPTS) throw error
		}
	}
}
