/**
 * The records of an agent's skills: one small index, which every change updates, and for each skill a record and its
 * text. All in the agent's own scope, so they are deleted with it.
 */
import { Fault } from '../../core/errors.ts'
import type { AgentRef } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { change } from '../../core/store/change.ts'
import type { Entry, Key, Op, Store } from '../../core/store/ports.ts'
import type { SkillStatus, Source } from './contract.ts'

/** The data about a skill that a run needs. */
export interface IndexEntry {
	id: string
	name: string
	/** The tool's name; shared by revisions of one name, never by two names. */
	tool: string
	status: SkillStatus
	/** Digest of the document that is to be approved, or was. */
	digest: string
}

export interface SkillRecord {
	id: string
	description: string
	source: Source
	/** Bytes of the document. */
	size: number
	installed_at: string
	approved_at: string | null
	/** The token's id; null for a local caller without one. */
	approved_by: string | null
}

export interface Index {
	/** Oldest first. */
	skills: IndexEntry[]
}

/** A change of the index: the next list, and the writes of the same commit. */
export interface IndexChange<T> {
	/** Undefined: nothing is written. */
	skills?: IndexEntry[]
	/** At most 99. */
	ops?: Op[]
	result: T
}

export const keys = {
	index: (agent: AgentRef): Key => [agentScope(agent.uid), 'skills'],
	record: (agent: AgentRef, id: string): Key => [agentScope(agent.uid), 'skill', id],
	text: (agent: AgentRef, id: string): Key => [agentScope(agent.uid), 'skill-text', id],
}

export function indexOf(store: Store, agent: AgentRef): Promise<Entry<Index> | undefined> {
	return store.get<Index>(keys.index(agent))
}

/** Throws `not_found`. */
export function findEntry(skills: readonly IndexEntry[], agent: AgentRef, id: string): IndexEntry {
	const entry = skills.find((one) => one.id === id)
	if (entry) return entry
	const hint = { route: 'GET /v1/agents/{id}/skills', params: { id: agent.name }, does: 'lists those that it has' }
	throw new Fault('not_found', `agent "${agent.name}" has no skill "${id}"`, { hint })
}

/** Throws `not_found` if it was removed meanwhile. */
export async function readSkill(
	store: Store,
	agent: AgentRef,
	{ id, name }: IndexEntry,
): Promise<{ record: SkillRecord; text: string }> {
	const [record, text] = await Promise.all([store.get<SkillRecord>(keys.record(agent, id)), readText(store, agent, id)])
	if (!record || text === undefined)
		throw new Fault('not_found', `the skill "${name}" was removed, or its document is lost; install it again`)
	return { record: record.value, text }
}

/** Up to 0.1.0 it was stored as text. */
export async function readText(store: Store, agent: AgentRef, id: string): Promise<string | undefined> {
	const kept = (await store.get<string | Uint8Array>(keys.text(agent, id)))?.value
	return kept instanceof Uint8Array ? Buffer.from(kept).toString() : kept
}

/** Changes the index, and dependent records, in one commit: `decide` may be called several times, see `change`. */
export function changeIndex<T>(
	store: Store,
	agent: AgentRef,
	decide: (skills: readonly IndexEntry[]) => IndexChange<T> | Promise<IndexChange<T>>,
): Promise<T> {
	const key = keys.index(agent)
	return change(store, key[0], async () => {
		const entry = await indexOf(store, agent)
		const { skills, ops = [], result } = await decide(entry?.value.skills ?? [])
		if (!skills) return { result }
		const value = skills.length > 0 ? { skills } : undefined
		return { ops: [{ key, value, expect: entry?.rev ?? null }, ...ops], result }
	})
}

/** Deletes a skill's record and text. */
export function erasing(agent: AgentRef, id: string): Op[] {
	return [
		{ key: keys.record(agent, id), value: undefined },
		{ key: keys.text(agent, id), value: undefined },
	]
}
