/** Periodic maintenance: deletes old deliveries, and the remaining records of deleted webhooks. */
import { isFault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { deleteAll } from '../shared/delete-all.ts'
import type { Key, Op, Store } from '../../core/store/ports.ts'
import type { WebhookDelivery, WebhookSettings } from './contract.ts'
import { totalsOf } from './delivery-log.ts'
import { keys } from './records.ts'
import type { AcceptedRecord, Pointer, Pruned, WebhookRecord } from './records.ts'
import type { WebhookSecrets } from './secrets.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const FIRST_MS = 60_000
/** Younger pointers without a webhook are kept: a registration may be in progress, or a deleted webhook may have deliveries in flight. */
const IN_PROGRESS_MS = 600_000
/** Limit of accepted deliveries kept per webhook, whatever their age. */
const ACCEPTED = 100_000
const COMMIT_LIMIT = 100

export function maintain(ctx: Context<WebhookSettings>, secrets: WebhookSecrets): void {
	const work = (): Promise<void> => tidy(ctx, secrets, Date.now())
	ctx.after(FIRST_MS, work)
	ctx.every(HOUR_MS, work)
	ctx.on('agent.deleted', ({ payload }) => forgetAgent(ctx, secrets, String(payload.uid)))
}

type MaintenanceDeps = Pick<Context<WebhookSettings>, 'store' | 'config' | 'signal'>

/** `at`: the current time in milliseconds since 1970. */
export async function tidy(
	{ store, config, signal }: MaintenanceDeps,
	secrets: WebhookSecrets,
	at: number,
	kept: number = ACCEPTED,
): Promise<void> {
	const before = new Date(at - config.retention_days * DAY_MS).toISOString()
	for await (const { key, value: pointer } of store.list<Pointer>(keys.pointers())) {
		if (signal.aborted) return
		const { uid, id, slug } = pointer
		const webhook = (await store.get<WebhookRecord>(keys.webhook(uid, slug)))?.value
		if (webhook?.id === id && webhook.token_hash === key.at(-1)) await prune(store, pointer, before, kept)
		else if (Date.parse(pointer.at) < at - IN_PROGRESS_MS)
			await deleteLeftovers(store, secrets, key, pointer, webhook?.id === id)
	}
}

/** The records are deleted with the agent's scope. Its pointers, then without a target, are left to `tidy`. */
async function forgetAgent({ store }: MaintenanceDeps, secrets: WebhookSecrets, uid: string): Promise<void> {
	for await (const { value } of store.list<Pointer>(keys.pointers())) if (value.uid === uid) secrets.retire(value.id)
}

/** Deletes the records of a deleted webhook, and the pointer last: as long as it exists, the next maintenance repeats this. */
async function deleteLeftovers(
	store: Store,
	secrets: WebhookSecrets,
	key: Key,
	{ uid, id }: Pointer,
	isRotated: boolean,
): Promise<void> {
	if (!isRotated) {
		secrets.retire(id)
		for (const prefix of [keys.allAccepted, keys.allRejected, keys.allSeen, keys.counts, keys.pruned])
			await deleteAll(store, prefix(uid, id))
	}
	await store.delete(key)
}

/** `before`: ISO 8601. */
async function prune(store: Store, { uid, id }: Pointer, before: string, kept: number): Promise<void> {
	for await (const { key, value } of store.list<WebhookDelivery>(keys.allRejected(uid, id)))
		if (value.received_at < before) await store.delete(key)

	const prunedKey = keys.pruned(uid, id)
	const { count } = await totalsOf(store, uid, id)
	for (;;) {
		const pruned = await store.get<Pruned>(prunedKey)
		const prunedBefore = pruned?.value.count ?? 0
		const ops: Op[] = []
		let deleted = 0
		for await (const { key, value } of store.list<AcceptedRecord>(keys.allAccepted(uid, id))) {
			const tooMany = count - prunedBefore - deleted > kept
			// Two ops for this delivery, and one for the count.
			if ((value.received_at >= before && !tooMany) || ops.length + 3 > COMMIT_LIMIT) break
			ops.push({ key, value: undefined })
			if (value.seen !== undefined) ops.push({ key: keys.seen(uid, id, value.seen), value: undefined })
			deleted++
		}
		if (deleted === 0) return
		ops.push({ key: prunedKey, value: { count: prunedBefore + deleted } satisfies Pruned, expect: pruned?.rev ?? null })
		try {
			await store.commit(agentScope(uid), ops)
		} catch (error) {
			if (isFault(error, 'conflict')) return // another instance is pruning
			throw error
		}
	}
}
