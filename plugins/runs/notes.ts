/** The notes of short-term memory. They last as long as their conversation, or until the agent is reset. */
import { Fault } from '../../core/errors.ts'
import { timeOfId } from '../../core/util/ids.ts'
import type { AgentRef } from '../../core/plugin.ts'
import { changeRecord } from '../../core/store/change.ts'
import { deleteAll } from '../shared/delete-all.ts'
import type { Store } from '../../core/store/ports.ts'
import type { RunRecord } from './contract.ts'
import { currentSession } from './conversation.ts'
import { keys } from './keys.ts'
import { hasOpenChild } from './records.ts'

/** A run from these sources has its own conversation, which ends with it. */
const ownConversation: readonly string[] = ['webhook', 'subagent', 'compaction', 'summary', 'sampling']

const NOTE_LIMIT = 64
const NOTE_BYTES = 16 * 1024

export async function readNotes(store: Store, uid: string, conversation: string): Promise<Record<string, unknown>> {
	return (await store.get<Record<string, unknown>>(keys.shortTerm(uid, conversation)))?.value ?? {}
}

/** `null` deletes the note. Returns the number of notes after the change. */
export async function writeNote(
	store: Store,
	uid: string,
	conversation: string,
	key: string,
	value: unknown,
): Promise<number> {
	const bytes = Buffer.byteLength(JSON.stringify(value) ?? '')
	if (bytes > NOTE_BYTES)
		throw new Fault(
			'invalid_arguments',
			`the value is ${bytes} bytes as JSON; at most ${NOTE_BYTES} are kept in short-term memory`,
		)
	return changeRecord<Record<string, unknown>, number>(store, keys.shortTerm(uid, conversation), (before = {}) => {
		const notes = new Map(Object.entries(before))
		if (value === null) notes.delete(key)
		else notes.set(key, value)
		if (notes.size > NOTE_LIMIT)
			throw new Fault(
				'invalid_arguments',
				`short-term memory holds at most ${NOTE_LIMIT} keys; write null to a key that is no longer needed`,
			)
		return { next: Object.fromEntries(notes), result: notes.size }
	})
}

/** Deletes the notes of conversations that have ended: earlier sessions, those of a single run, and those without any run. */
export async function forgetEndedNotes(store: Store, agent: Pick<AgentRef, 'uid' | 'name'>): Promise<void> {
	const { uid } = agent
	const session = await currentSession(store, agent)
	await deleteAll(store, keys.allShortTerm(uid), async ({ key: noted }) => {
		const conversation = noted.at(-1) ?? ''
		if (conversation === session || (await store.get(keys.queue(uid, conversation)))) return false
		const isSession = conversation === uid || timeOfId(conversation) !== undefined
		for await (const key of store.keys(keys.turns(uid, conversation), { limit: 1 })) {
			const first = (await store.get<RunRecord>(keys.run(uid, key.at(-1) ?? '')))?.value
			if (!first || isSession) return true
			return ownConversation.includes(first.trigger) && !(await hasOpenChild(store, first))
		}
		return true
	})
}
