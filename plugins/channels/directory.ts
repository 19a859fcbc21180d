/** The records of channels, and the list of their ids. */
import { Fault } from '../../core/errors.ts'
import { change, changeRecord } from '../../core/store/change.ts'
import { deleteAll } from '../shared/delete-all.ts'
import type { Entry, Op, Store } from '../../core/store/ports.ts'
import { keys, scopeOf } from './keys.ts'

export interface ChannelRecord {
	/** A UUIDv7. */
	id: string
	/** The adapter's `type`, never an alias. */
	type: string
	bot_token_ref: string
	config: Record<string, unknown>
	/** A caller with the scope `*` named its secret and server. */
	trusted: boolean
	/** When the rules about which messages are answered last changed; absent if they never did. */
	heard_since?: string
	created_at: string
	/** Its deletion is in progress. All other code treats it as deleted. */
	deleting?: true
}

/** One per channel. Every commit that adds or removes a binding updates it, which enforces the limit and keeps bindings out of a closed channel. */
interface BindingCount {
	bindings: number
	closed?: true
}

/** The list of channels is one record, in order of creation, which enforces the limit. */
interface ListedChannel {
	id: string
	created_at: string
}

export type Directory = ReturnType<typeof directoryOf>

const ID = /^[0-9a-f-]{36}$/
/** A channel is in the list before its record exists. Without a record after this time, its creation was interrupted. */
const CREATION_MS = 60_000

export function directoryOf(store: Store) {
	const entryOf = async (id: string) => (ID.test(id) ? store.get<ChannelRecord>(keys.channel(id)) : undefined)
	const listed = async (): Promise<ListedChannel[]> => (await store.get<ListedChannel[]>(keys.index))?.value ?? []
	const changeList = (next: (list: ListedChannel[]) => ListedChannel[]): Promise<void> =>
		changeRecord<ListedChannel[]>(store, keys.index, (list = []) => ({ next: next(list), result: undefined }))
	const active = async (id: string) => {
		const entry = await entryOf(id)
		if (!entry || entry.value.deleting) throw noChannel(id)
		return entry
	}

	return {
		/** In the order of creation. */
		async list(): Promise<ChannelRecord[]> {
			const entries = await Promise.all((await listed()).map(({ id }) => entryOf(id)))
			return entries.flatMap((entry) => (entry && !entry.value.deleting ? entry.value : []))
		},
		async find(id: string): Promise<ChannelRecord | undefined> {
			const entry = await entryOf(id)
			return entry && !entry.value.deleting ? entry.value : undefined
		},
		/** Throws `not_found`. */
		get: async (id: string): Promise<ChannelRecord> => (await active(id)).value,
		/** Throws `conflict` if there are already `limit` channels. */
		async add(record: ChannelRecord, limit: number): Promise<void> {
			const { id, created_at } = record
			await changeList((list) => {
				if (list.length < limit) return [...list, { id, created_at }]
				throw new Fault(
					'conflict',
					`there are ${list.length} channels, which is the limit (channels.max_channels); delete one first`,
				)
			})
			const ledger: BindingCount = { bindings: 0 }
			await store.commit(scopeOf(id), [
				{ key: keys.channel(id), value: record, expect: null },
				{ key: keys.ledger(id), value: ledger, expect: null },
			])
		},
		/** `next` may throw, and may be called several times. Throws `not_found`. */
		change: (id: string, next: (record: ChannelRecord) => Promise<ChannelRecord>): Promise<ChannelRecord> =>
			change(store, scopeOf(id), async () => {
				const { key, value, rev } = await active(id)
				const result = await next(value)
				return { ops: result === value ? [] : [{ key, value: result, expect: rev }], result }
			}),
		/** Marks a channel as deleted, after which it accepts no bindings and no codes. Throws `not_found`. */
		close: (id: string): Promise<ChannelRecord> =>
			change(store, scopeOf(id), async () => {
				const { key, value, rev } = await active(id)
				const closed: BindingCount = { bindings: 0, closed: true }
				const ops: Op[] = [
					{ key, value: { ...value, deleting: true }, expect: rev },
					{ key: keys.ledger(id), value: closed },
					{ key: keys.codes(id), value: undefined },
				]
				return { ops, result: value }
			}),
		/** Deletes all records of a closed channel except the channel's own. Idempotent. */
		async sweep(id: string): Promise<void> {
			const own = keys.channel(id).at(-1)
			await deleteAll(store, [scopeOf(id)], ({ key }) => key.length !== 2 || key[1] !== own)
		},
		/** Deletes the channel's record, and removes it from the list. Idempotent. */
		async erase(id: string): Promise<void> {
			await store.delete(keys.channel(id))
			await changeList((list) => list.filter((one) => one.id !== id))
		},
		/** Channels whose deletion was interrupted, and ids without a record whose creation was interrupted. */
		async leftovers(): Promise<{ id: string; record: ChannelRecord | undefined }[]> {
			const found: Awaited<ReturnType<Directory['leftovers']>> = []
			for (const { id, created_at } of await listed()) {
				const record = (await entryOf(id))?.value
				const isInterrupted = Date.now() - Date.parse(created_at) > CREATION_MS
				if (record ? record.deleting : isInterrupted) found.push({ id, record })
			}
			return found
		},
	}
}

/** The ledger of a channel. Throws `not_found` if the channel does not exist or is closed. */
export async function ledgerOf(store: Store, channel_id: string): Promise<Entry<BindingCount>> {
	const ledger = await store.get<BindingCount>(keys.ledger(channel_id))
	if (!ledger || ledger.value.closed) throw noChannel(channel_id)
	return ledger
}

function noChannel(id: string): Fault {
	const hint = { route: 'GET /v1/channels', does: 'lists them' }
	return new Fault('not_found', `there is no channel "${id.slice(0, 64)}"`, { hint })
}
