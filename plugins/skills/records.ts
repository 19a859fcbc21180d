/**
 * What is kept of an agent's skills: one small index, which every change goes through, and for each skill a record and its
 * text. All in the agent's own scope, so they go with it.
 */
import { Fault, isFault } from '../../core/errors.ts'
import type { AgentRef } from '../../core/plugin.ts'
import type { Entry, Key, Op, Store } from '../../core/store/ports.ts'
import type { SkillStatus, Source } from './contract.ts'

/** What a run needs to know of a skill. */
export interface IndexEntry {
	id: string
	name: string
	/** The tool's name; revisions of one name share it, no two names do. */
	tool: string
	status: SkillStatus
	/** Of the document that is to be approved, or was. */
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

/** How an index changes: the next list, and what is written in the same commit. */
export interface Change<T> {
	/** Undefined: nothing is to be written. */
	skills?: IndexEntry[]
	/** At most 99. */
	ops?: Op[]
	result: T
}

export const keys = {
	index: (agent: AgentRef): Key => [`agent:${agent.uid}`, 'skills'],
	record: (agent: AgentRef, id: string): Key => [`agent:${agent.uid}`, 'skill', id],
	text: (agent: AgentRef, id: string): Key => [`agent:${agent.uid}`, 'skill-text', id],
}

export function indexOf(store: Store, agent: AgentRef): Promise<Entry<Index> | undefined> {
	return store.get<Index>(keys.index(agent))
}

/** Throws `not_found`. */
export function findEntry(skills: readonly IndexEntry[], agent: AgentRef, id: string): IndexEntry {
	const entry = skills.find((one) => one.id === id)
	if (entry) return entry
	const where = `GET /v1/agents/${agent.name}/skills`
	throw new Fault('not_found', `agent "${agent.name}" has no skill "${id}"; ${where} lists those that it has`)
}

/** Throws `not_found` where it was removed meanwhile. */
export async function readSkill(
	store: Store,
	agent: AgentRef,
	{ id, name }: IndexEntry,
): Promise<{ record: SkillRecord; text: string }> {
	const [record, text] = await Promise.all([
		store.get<SkillRecord>(keys.record(agent, id)),
		store.get<string>(keys.text(agent, id)),
	])
	if (!record || typeof text?.value !== 'string')
		throw new Fault('not_found', `the skill "${name}" was removed, or its document is lost; install it again`)
	return { record: record.value, text: text.value }
}

/** Reads, decides and writes as one, again where somebody else was faster: `decide` may be called several times. */
export async function changeIndex<T>(
	store: Store,
	agent: AgentRef,
	decide: (skills: readonly IndexEntry[]) => Change<T> | Promise<Change<T>>,
): Promise<T> {
	for (;;) {
		const entry = await indexOf(store, agent)
		const { skills, ops = [], result } = await decide(entry?.value.skills ?? [])
		if (!skills) return result
		const key = keys.index(agent)
		const value = skills.length > 0 ? { skills } : undefined
		try {
			await store.commit(key[0], [{ key, value, expect: entry?.rev ?? null }, ...ops])
			return result
		} catch (error) {
			if (!isFault(error, 'conflict')) throw error
		}
	}
}

/** Takes a skill's record and text away. */
export function erasing(agent: AgentRef, id: string): Op[] {
	return [
		{ key: keys.record(agent, id), value: undefined },
		{ key: keys.text(agent, id), value: undefined },
	]
}
