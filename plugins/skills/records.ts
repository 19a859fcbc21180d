/**
 * The records of an agent's skills: one small index, which every change updates, and a record and files (stored-files.ts) for each
 * skill. They are in the agent's scope, so they are deleted with the agent.
 */
import { Fault } from '../../core/errors.ts'
import type { AgentRef } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { change } from '../../core/store/change.ts'
import type { Entry, Key, Op, Store } from '../../core/store/ports.ts'
import type { Skill, SkillStatus, Source } from './contract.ts'
import type { LeftOut, SkillFile } from './folder/contract.ts'
import { erasingFiles, readFiles } from './stored-files.ts'

/** The data about a skill that a run needs. */
export interface IndexEntry {
	id: string
	name: string
	/** The name of the tool. Revisions of one skill share it; different skills never do. */
	tool: string
	status: SkillStatus
	/** Digest of the files: the approved ones, or those to approve. */
	digest: string
	/** Bytes of all files. */
	size: number
}

export interface SkillRecord {
	id: string
	description: string
	source: Source
	/** Bytes of all files. */
	size: number
	/** Absent: none. */
	left_out?: LeftOut[]
	installed_at: string
	approved_at: string | null
	/** The token's id; null for a local caller without one. */
	approved_by: string | null
}

export interface Index {
	/** Oldest first. */
	skills: IndexEntry[]
}

/** A change of the index: the new list, and further writes of the same commit. */
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
}

export async function indexOf(store: Store, agent: AgentRef): Promise<Entry<Index> | undefined> {
	return store.getShared<Index>(keys.index(agent))
}

export async function entriesOf(store: Store, agent: AgentRef): Promise<readonly IndexEntry[]> {
	return (await indexOf(store, agent))?.value.skills ?? []
}

/** Throws `not_found`. */
export function findEntry(skills: readonly IndexEntry[], agent: AgentRef, id: string): IndexEntry {
	const entry = skills.find((one) => one.id === id)
	if (entry) return entry
	const hint = { route: 'GET /v1/agents/{id}/skills', params: { id: agent.name }, does: 'lists its skills' }
	throw new Fault('not_found', `agent "${agent.name}" has no skill "${id}"`, { hint })
}

export interface StoredSkill {
	record: SkillRecord
	files: SkillFile[]
}

/** Throws `not_found` if it was removed meanwhile. */
export async function readSkill(store: Store, agent: AgentRef, { id, name }: IndexEntry): Promise<StoredSkill> {
	const [record, files] = await Promise.all([
		store.get<SkillRecord>(keys.record(agent, id)),
		readFiles(store, agent, id),
	])
	if (!record || !files)
		throw new Fault('not_found', `the skill "${name}" was removed, or its files are lost; install it again`)
	return { record: record.value, files }
}

/** Changes the index and other records in one commit. `decide` may be called several times, see `change`. */
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

/** The skill as clients see it. */
export function viewOf({ id, name, status }: IndexEntry, { description, installed_at }: SkillRecord): Skill {
	return { id, name, description, status, installed_at }
}

/** The writes that delete a skill's record and files; at most 11. */
export function erasing(agent: AgentRef, { id, size }: IndexEntry): Op[] {
	return [{ key: keys.record(agent, id), value: undefined }, ...erasingFiles(agent, id, size)]
}
