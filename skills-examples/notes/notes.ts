/** The service: other plugins get it by `ctx.use('notes')`, and this plugin's routes as their third argument. */
import type { AgentRef, Context } from 'svc-gateway'
import type { Settings } from './settings.ts'

export interface Note {
	note_id: string
	agent: string
	text: string
	created_at: string
}

export interface Notes {
	/** Adds a note, once per `key`. Throws `notes_full`, and `invalid_request` if the text is too long or not a text. */
	add(agent: AgentRef, text: unknown, key: string): Promise<Note>
	/** The notes of one agent or of all agents, oldest first. */
	list(uid?: string): Promise<Note[]>
	/** Throws `not_found`. */
	delete(note_id: string): Promise<void>
	/** Deletes the notes of an agent that was deleted. */
	forget(uid: string): Promise<void>
	/** Deletes notes that are older than `expire_after_days`. */
	expire(): Promise<void>
	/** For each agent with notes: their number, and the limit. */
	usage(): Promise<{ agent: string; notes: number; max: number }[]>
}

/** The stored form of a note. */
type Stored = Note & { uid: string }

const DAY_MS = 86_400_000

export function openNotes(ctx: Context<Settings>): Notes {
	const { max_length, max_per_agent, expire_after_days } = ctx.config
	const notes = ctx.collection<Stored>('notes')

	async function all(): Promise<Stored[]> {
		const found: Stored[] = []
		for await (const [, note] of notes.list()) found.push(note)
		return found.toSorted((a, b) => (a.created_at < b.created_at ? -1 : 1))
	}

	async function remove(note_id: string, reason: 'request' | 'expired'): Promise<void> {
		await notes.delete(note_id)
		await ctx.emit({ event_type: 'notes.deleted', payload: { note_id, reason } })
	}

	return {
		async add(agent, text, key) {
			if (typeof text !== 'string' || text === '' || text.length > max_length)
				throw ctx.fault('invalid_request', `text must have 1 to ${max_length} characters`)
			const mine = (await all()).filter(({ uid }) => uid === agent.uid)
			// A call that is repeated after a crash has the same key.
			const known = mine.find(({ note_id }) => note_id === key)
			if (known) return shown(known)
			if (mine.length >= max_per_agent)
				throw ctx.fault('notes_full', `there are ${mine.length} notes, which is the limit; delete one first`)
			const note = { note_id: key, uid: agent.uid, agent: agent.name, text, created_at: new Date().toISOString() }
			await notes.put(key, note)
			await ctx.emit({ event_type: 'notes.added', payload: { note_id: key, length: text.length } }, agent.name)
			return shown(note)
		},
		async list(uid) {
			return (await all()).filter((note) => uid === undefined || note.uid === uid).map(shown)
		},
		async delete(note_id) {
			if (!(await notes.get(note_id))) throw ctx.fault('not_found', `there is no note "${note_id}"; see GET /v1/notes`)
			await remove(note_id, 'request')
		},
		async forget(uid) {
			for (const note of await all()) if (note.uid === uid) await notes.delete(note.note_id)
		},
		async expire() {
			const oldest = new Date(Date.now() - expire_after_days * DAY_MS).toISOString()
			for (const { note_id, created_at } of await all()) if (created_at < oldest) await remove(note_id, 'expired')
		},
		async usage() {
			const counts = Map.groupBy(await all(), ({ agent }) => agent)
			return [...counts].map(([agent, { length }]) => ({ agent, notes: length, max: max_per_agent }))
		},
	}
}

function shown({ note_id, agent, text, created_at }: Stored): Note {
	return { note_id, agent, text, created_at }
}
