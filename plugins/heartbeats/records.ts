/** The records of heartbeats, in the scope of their agent. */
import { hash } from 'node:crypto'
import { Fault } from '../../core/errors.ts'
import type { AgentRef } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { changeRecord } from '../../core/store/change.ts'
import type { Key, Store } from '../../core/store/ports.ts'
import type { Destination } from '../runs/contract.ts'
import { namesOfOthers } from '../shared/names-of-others.ts'
import type { Heartbeat } from './contract.ts'

/** The decision about a beat. After a crash it is executed, whatever has changed since. */
export interface BeatDecision {
	at: string
	/** Null if the beat starts a run. */
	skip: 'missed' | 'busy' | 'queue_full' | null
}

export interface HeartbeatRecord extends Omit<Heartbeat, 'deliver'> {
	destination: Destination
	/** Set while the beat of `next_at` is in progress. */
	begun: BeatDecision | null
	/** Hash of the key of the last call that changed it. Repeating that call changes nothing. */
	changed_by?: string
}

/** What is kept of a heartbeat that has fired once. */
export type EndedRecord = Omit<HeartbeatRecord, 'prompt' | 'begun'>

/** One per agent. Every commit that adds or removes a heartbeat updates it, which enforces the limit. */
interface HeartbeatCount {
	count: number
	/** Hashes of the latest calls of the agent that deleted a heartbeat, to recognize repeated calls. */
	deletions: string[]
	/** The latest heartbeats that have fired once, so that a repeated call does not create them again. Absent before the first. */
	ended?: EndedRecord[]
}

const none: HeartbeatCount = { count: 0, deletions: [] }
const DELETIONS = 64
const ENDED = 64

export function beatsOnce({ at }: Pick<HeartbeatRecord, 'at'>): boolean {
	return typeof at === 'string'
}

export const keys = {
	heartbeat: (uid: string, id: string): Key => [agentScope(uid), 'heartbeat', id],
	heartbeats: (uid: string): Key => [agentScope(uid), 'heartbeat'],
	ledger: (uid: string): Key => [agentScope(uid), 'heartbeats'],
}

/** Adds a record and returns it, or returns the existing record with the same id. Throws `conflict` at the limit. */
export function addRecord(
	store: Store,
	{ uid, name }: AgentRef,
	record: HeartbeatRecord,
	limit: number,
): Promise<HeartbeatRecord> {
	return changeRecord<HeartbeatCount, HeartbeatRecord>(store, keys.ledger(uid), async (ledger = none) => {
		const earlier = await store.get<HeartbeatRecord>(keys.heartbeat(uid, record.id))
		if (earlier) return { result: earlier.value }
		if (ledger.count >= limit) {
			throw new Fault(
				'conflict',
				`agent "${name}" has ${ledger.count} heartbeats, which is the limit (heartbeats.max_per_agent); delete one first`,
			)
		}
		const ops = [{ key: keys.heartbeat(uid, record.id), value: record, expect: null }]
		return { result: record, ops, next: { ...ledger, count: ledger.count + 1 } }
	})
}

/** Returns false if a call with the same `callKey` has deleted it before. Throws `not_found`. */
export function removeRecord(store: Store, { uid, name }: AgentRef, id: string, callKey?: string): Promise<boolean> {
	const mark = callKey === undefined ? null : markOf(callKey)
	return changeRecord<HeartbeatCount, boolean>(store, keys.ledger(uid), async (ledger = none) => {
		if (mark !== null && ledger.deletions.includes(mark)) return { result: false }
		const entry = await store.get<HeartbeatRecord>(keys.heartbeat(uid, id))
		if (!entry) throw await notFound(store, { uid, name }, id)
		const deletions = mark === null ? ledger.deletions : [...ledger.deletions, mark].slice(-DELETIONS)
		const ops = [{ key: entry.key, value: undefined, expect: entry.rev }]
		return { result: true, ops, next: { ...ledger, count: ledger.count - 1, deletions } }
	})
}

/** Removes a heartbeat that has fired for the last time. Returns false if the record has changed since `rev`. */
export function endRecord(store: Store, uid: string, id: string, rev: string): Promise<boolean> {
	return changeRecord<HeartbeatCount, boolean>(store, keys.ledger(uid), async (ledger = none) => {
		const entry = await store.get<HeartbeatRecord>(keys.heartbeat(uid, id))
		if (entry?.rev !== rev) return { result: false }
		const ops = [{ key: entry.key, value: undefined, expect: rev }]
		const { prompt: _prompt, begun: _begun, ...kept } = entry.value
		const ended = [...(ledger.ended ?? []), { ...kept, next_at: null }].slice(-ENDED)
		return { result: true, ops, next: { ...ledger, count: ledger.count - 1, ended } }
	})
}

/** Finds a heartbeat among the latest 64 of the agent that have fired once. */
export async function findEnded(store: Store, uid: string, id: string): Promise<EndedRecord | undefined> {
	const ledger = await store.get<HeartbeatCount>(keys.ledger(uid))
	return ledger?.value.ended?.find((one) => one.id === id)
}

export function markOf(callKey: string): string {
	return hash('sha256', callKey)
}

/** The id for a heartbeat that a call creates: the same if the call is repeated. */
export function idOf(callKey: string): string {
	const hex = hash('sha256', callKey)
	return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
		'-',
	)
}

/** The error for an unknown heartbeat, which lists the existing ones. */
export async function notFound(store: Store, { uid, name }: AgentRef, id: string): Promise<Fault> {
	const others = await namesOfOthers(store, keys.heartbeats(uid))
	return new Fault('not_found', `agent "${name}" has no heartbeat "${id}"; ${others}`)
}

/** The runs of a heartbeat share a conversation. */
export function conversationOf(id: string): string {
	return `heartbeat:${id}`
}
