/** What is kept of heartbeats, in the scope of their agent. */
import { createHash } from 'node:crypto'
import { Fault, isFault } from '../../core/errors.ts'
import type { AgentRef } from '../../core/plugin.ts'
import type { Key, Op, Store } from '../../core/store/ports.ts'
import type { Heartbeat } from './contract.ts'

/** What was decided of a beat; after a crash that is gone on with, whatever happened since. */
export interface Begun {
	at: string
	/** Null where it starts a run. */
	skip: 'missed' | 'busy' | 'queue_full' | null
}

export interface HeartbeatRecord extends Heartbeat {
	/** Of the beat of `next_at`, while it is under way. */
	begun: Begun | null
}

/** One for each agent; it changes with every heartbeat that comes or goes, so that the limit holds. */
interface Ledger {
	count: number
	/** The last deletions by the agent itself: a call that is made again finds that it was made. */
	deletions: string[]
}

const ATTEMPTS = 100
const DELETIONS = 64

export const keys = {
	heartbeat: (uid: string, id: string): Key => [`agent:${uid}`, 'heartbeat', id],
	heartbeats: (uid: string): Key => [`agent:${uid}`, 'heartbeat'],
	ledger: (uid: string): Key => [`agent:${uid}`, 'heartbeats'],
}

/** Answers with the record, and whether this call made it: one with the same id is left as it is. */
export function addRecord(
	store: Store,
	{ uid, name }: AgentRef,
	record: HeartbeatRecord,
	limit: number,
): Promise<{ record: HeartbeatRecord; isNew: boolean }> {
	return changeLedger<{ record: HeartbeatRecord; isNew: boolean }>(store, uid, async (ledger) => {
		const earlier = await store.get<HeartbeatRecord>(keys.heartbeat(uid, record.id))
		if (earlier) return { result: { record: earlier.value, isNew: false } }
		if (ledger.count >= limit) {
			throw new Fault(
				'conflict',
				`agent "${name}" has ${ledger.count} heartbeats, as many as it may (heartbeats.max_per_agent); delete one first`,
			)
		}
		const op = { key: keys.heartbeat(uid, record.id), value: record, expect: null }
		return { result: { record, isNew: true }, op, ledger: { ...ledger, count: ledger.count + 1 } }
	})
}

/** False where a call with the same `callKey` has done it already. Throws `not_found`. */
export function removeRecord(store: Store, { uid, name }: AgentRef, id: string, callKey?: string): Promise<boolean> {
	const mark = callKey === undefined ? null : hash(callKey)
	return changeLedger(store, uid, async (ledger) => {
		if (mark !== null && ledger.deletions.includes(mark)) return { result: false }
		const entry = await store.get<HeartbeatRecord>(keys.heartbeat(uid, id))
		if (!entry) {
			const ids: string[] = []
			for await (const { key } of store.list(keys.heartbeats(uid), { limit: 20 })) ids.push(key.at(-1) ?? '')
			const others = ids.length === 0 ? 'it has none' : `it has ${ids.join(', ')}`
			throw new Fault('not_found', `agent "${name}" has no heartbeat "${id}"; ${others}`)
		}
		const deletions = mark === null ? ledger.deletions : [...ledger.deletions, mark].slice(-DELETIONS)
		const op = { key: entry.key, value: undefined, expect: entry.rev }
		return { result: true, op, ledger: { count: ledger.count - 1, deletions } }
	})
}

/** An id that a call made again comes to as well. */
export function idOf(callKey: string): string {
	const hex = hash(callKey)
	return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
		'-',
	)
}

async function changeLedger<T>(
	store: Store,
	uid: string,
	build: (ledger: Ledger) => Promise<{ result: T; op?: Op; ledger?: Ledger }>,
): Promise<T> {
	const key = keys.ledger(uid)
	for (let attempt = 1; ; attempt++) {
		const entry = await store.get<Ledger>(key)
		const { result, op, ledger } = await build(entry?.value ?? { count: 0, deletions: [] })
		if (!op) return result
		try {
			await store.commit(`agent:${uid}`, [op, { key, value: ledger, expect: entry?.rev ?? null }])
			return result
		} catch (error) {
			if (!isFault(error, 'conflict') || attempt === ATTEMPTS) throw error
		}
	}
}

function hash(text: string): string {
	return createHash('sha256').update(text).digest('hex')
}
