/** The records of all channels, and the list of them that is read at the start. */
import { Fault } from '../../core/errors.ts'
import { change } from '../../core/store/change.ts'
import { deleteAll } from '../../core/store/delete-all.ts'
import type { Op, Store } from '../../core/store/ports.ts'
import { INDEX_SCOPE, keys, scopeOf } from './keys.ts'

export interface ChannelRecord {
	/** A UUIDv7. */
	id: string
	/** As its adapter says, never an alias. */
	type: string
	bot_token_ref: string
	config: Record<string, unknown>
	/** What it names was named by a caller who may name anything. */
	trusted: boolean
	/** When it was changed last who is answered; absent where it never was. */
	heard_since?: string
	created_at: string
	/** Its deletion is in progress; all other code sees it as deleted. */
	deleting?: true
}

/** One for each channel; it changes with every binding that comes or goes, so that the limit holds, and none comes to a closed one. */
export interface Ledger {
	bindings: number
	closed?: true
}

/** The list of channels is one record, in the order of their creation, so that the limit holds. */
interface Listed {
	id: string
	created_at: string
}

export interface Directory {
	/** In the order of creation. */
	list(): Promise<ChannelRecord[]>
	find(id: string): Promise<ChannelRecord | undefined>
	/** Throws `not_found`. */
	get(id: string): Promise<ChannelRecord>
	/** Throws `conflict` where there are `limit` already. */
	add(record: ChannelRecord, limit: number): Promise<void>
	/** `next` may throw, and may be called several times. Throws `not_found`. */
	change(id: string, next: (record: ChannelRecord) => Promise<ChannelRecord>): Promise<ChannelRecord>
	/** Marks it as deleted: from now on it takes no bindings and no codes. Throws `not_found`. */
	close(id: string): Promise<ChannelRecord>
	/** Removes all that is kept of a closed channel, but its mark. May be repeated. */
	sweep(id: string): Promise<void>
	/** Removes the mark, and takes it from the list. May be repeated. */
	erase(id: string): Promise<void>
	/** Channels whose deletion was interrupted, and ids whose creation was. */
	leftovers(): Promise<{ id: string; record: ChannelRecord | undefined }[]>
}

const ID = /^[0-9a-f-]{36}$/
/** A creation in progress has its id in the list before its record exists. */
const CREATION_MS = 60_000

export function directoryOf(store: Store): Directory {
	const entryOf = async (id: string) => (ID.test(id) ? store.get<ChannelRecord>(keys.channel(id)) : undefined)
	const listed = async (): Promise<Listed[]> => (await store.get<Listed[]>(keys.index))?.value ?? []
	const changeList = (next: (list: Listed[]) => Listed[]): Promise<void> =>
		change(store, INDEX_SCOPE, async () => {
			const entry = await store.get<Listed[]>(keys.index)
			const value = next(entry?.value ?? [])
			return { ops: [{ key: keys.index, value, expect: entry?.rev ?? null }], result: undefined }
		})
	const active = async (id: string) => {
		const entry = await entryOf(id)
		if (!entry || entry.value.deleting) throw noChannel(id)
		return entry
	}

	return {
		async list() {
			const entries = await Promise.all((await listed()).map(({ id }) => entryOf(id)))
			return entries.flatMap((entry) => (entry && !entry.value.deleting ? entry.value : []))
		},
		async find(id) {
			const entry = await entryOf(id)
			return entry && !entry.value.deleting ? entry.value : undefined
		},
		get: async (id) => (await active(id)).value,
		async add(record, limit) {
			const { id, created_at } = record
			await changeList((list) => {
				if (list.length < limit) return [...list, { id, created_at }]
				throw new Fault(
					'conflict',
					`there are ${list.length} channels, as many as there may be (channels.max_channels); delete one first`,
				)
			})
			const ledger: Ledger = { bindings: 0 }
			await store.commit(scopeOf(id), [
				{ key: keys.channel(id), value: record, expect: null },
				{ key: keys.ledger(id), value: ledger, expect: null },
			])
		},
		change: (id, next) =>
			change(store, scopeOf(id), async () => {
				const { key, value, rev } = await active(id)
				const result = await next(value)
				return { ops: result === value ? [] : [{ key, value: result, expect: rev }], result }
			}),
		close: (id) =>
			change(store, scopeOf(id), async () => {
				const { key, value, rev } = await active(id)
				const closed: Ledger = { bindings: 0, closed: true }
				const ops: Op[] = [
					{ key, value: { ...value, deleting: true }, expect: rev },
					{ key: keys.ledger(id), value: closed },
					{ key: keys.codes(id), value: undefined },
				]
				return { ops, result: value }
			}),
		async sweep(id) {
			const mark = keys.channel(id).at(-1)
			await deleteAll(store, [scopeOf(id)], ({ key }) => key.length !== 2 || key[1] !== mark)
		},
		async erase(id) {
			await store.delete(keys.channel(id))
			await changeList((list) => list.filter((one) => one.id !== id))
		},
		async leftovers() {
			const found: Awaited<ReturnType<Directory['leftovers']>> = []
			for (const { id, created_at } of await listed()) {
				const record = (await entryOf(id))?.value
				const isLate = Date.now() - Date.parse(created_at) > CREATION_MS
				if (record ? record.deleting : isLate) found.push({ id, record })
			}
			return found
		},
	}
}

export function noChannel(id: string): Fault {
	const hint = { route: 'GET /v1/channels', does: 'lists them' }
	return new Fault('not_found', `there is no channel "${id.slice(0, 64)}"`, { hint })
}
