/**
 * The ledger: the usage of each agent's models on each day. It is stored in the agent's scope, so that a call is counted in the
 * commit of its answer. When the agent is deleted, its records are moved to the plugin's own scope.
 */
import { hash } from 'node:crypto'
import type { AgentRef } from '../../core/plugin.ts'
import type { ModelUsage } from '../../core/protocol.ts'
import { agentScope, livenessKey } from '../../core/store/agent-scope.ts'
import type { Key, Op, Store } from '../../core/store/ports.ts'
import { withCalls } from './counted.ts'
import type { ModelRow } from './counted.ts'
import type { RunEnd } from './contract.ts'
import { withRun } from './run-counts.ts'
import type { RunCounts } from './run-counts.ts'

/** The usage by model, and that of callers with limits; see callers.ts. */
type UsageKind = 'usage' | 'caller-usage'

/** A part of the usage of an agent on a day. */
export interface DayRecord {
	/** The agent's name. */
	agent: string
	rows: ModelRow[]
	/** Absent in records of version 0.1.0, and if no run has ended. */
	runs?: RunCounts
}

/** A record that was read. */
export interface DayEntry extends DayRecord {
	day: string
}

/**
 * Records per agent and day. Concurrent runs of an agent should write different records, since writes of one record wait for
 * each other.
 */
const SLOTS = 16

/** The writes that add these calls, and the end of a run, to the day. No writes if there is nothing to add, or the agent was deleted. */
export async function countOps(
	store: Pick<Store, 'get'>,
	{ uid, name }: AgentRef,
	{ day, slot, calls, end }: { day: string; slot: number; calls: readonly ModelUsage[]; end?: RunEnd | undefined },
): Promise<Op[]> {
	if (calls.length === 0 && !end) return []
	const key: Key = [agentScope(uid), 'usage', day, String(slot).padStart(2, '0')]
	const entry = await store.get<DayRecord>(key)
	// The end of a run must not fail because its agent is gone.
	if (!entry && !(await store.get(livenessKey(uid)))) return []
	const { rows = [], runs } = entry?.value ?? {}
	const ended = end ? withRun(runs, end) : runs
	const value: DayRecord = { agent: name, rows: withCalls(rows, calls), ...(ended && { runs: ended }) }
	return [{ key, value, expect: entry?.rev ?? null }]
}

/** Days of the ledger, as `2026-11-02`: from `since` on and before `until`. */
export interface Days {
	since: string
	until: string
}

/** The records of an existing agent; without `uid`, those of all deleted agents. */
export async function* entriesOf(
	store: Pick<Store, 'list'>,
	uid: string | undefined,
	{ since, until }: Days,
): AsyncGenerator<DayEntry> {
	const prefix: Key = uid === undefined ? ['usage'] : [agentScope(uid), 'usage']
	for await (const { key, value } of store.list<DayRecord>(prefix, { after: [...prefix, since] })) {
		const day = key[prefix.length] ?? ''
		if (day >= until) return
		yield { ...value, day }
	}
}

/**
 * Copies the records of an agent that is being deleted to the plugin's own scope. They are copied unchanged, so this may be
 * repeated after a crash. `kind`: the part of their keys before the day.
 */
export async function keepUsage(store: Store, { uid }: AgentRef, kind: UsageKind): Promise<void> {
	for await (const { key, value } of store.list([agentScope(uid), kind])) {
		const [, , ...parts] = key
		await store.put([kind, ...parts.slice(0, -1), uid, ...parts.slice(-1)], value)
	}
}

/** Deletes records of days before `day`, of existing and deleted agents. */
export async function forgetDays(
	store: Store,
	agents: AsyncIterable<AgentRef>,
	day: string,
	kind: UsageKind,
): Promise<void> {
	const forgetUnder = async (prefix: Key): Promise<void> => {
		for await (const key of store.keys(prefix)) {
			// Keys sort by day: the first that is young enough ends the search.
			if ((key[prefix.length] ?? '') >= day) return
			await store.delete(key)
		}
	}
	await forgetUnder([kind])
	for await (const { uid } of agents) await forgetUnder([agentScope(uid), kind])
}

const unused: readonly number[] = Array.from({ length: SLOTS }, () => 0)
/** By agent: the number of runs in this process that use each slot. */
const used = new Map<string, number[]>()

/** Takes the slot that fewest runs of the agent use. */
export function takeSlot(uid: string): number {
	const counts = used.get(uid) ?? [...unused]
	used.set(uid, counts)
	const slot = counts.indexOf(Math.min(...counts))
	counts[slot] = (counts[slot] ?? 0) + 1
	return slot
}

/** The slot for a single write of a run that holds no slot. */
export function slotOf(run_id: string): number {
	return Number.parseInt(hash('sha256', run_id).slice(0, 4), 16) % SLOTS
}

export function freeSlot(uid: string, slot: number): void {
	const counts = used.get(uid)
	if (!counts) return
	counts[slot] = (counts[slot] ?? 0) - 1
	if (counts.every((count) => count === 0)) used.delete(uid)
}
