/** What a conversation remembers: its messages, and the notes of its short-term memory. */
import { Fault } from '../../core/errors.ts'
import { newId, now } from '../../core/ids.ts'
import type { AgentRef } from '../../core/plugin.ts'
import type { ChatMessage } from '../../core/protocol.ts'
import type { Store } from '../../core/store/ports.ts'
import type { Message, RunRecord } from './contract.ts'
import { keys } from './keys.ts'
import { change } from './records.ts'

/** What of earlier turns a model is shown: whichever limit is met first. */
const CONTEXT_TURNS = 50
const CONTEXT_CHARACTERS = 200_000
const HISTORY_TURNS = 1_000
/** Characters of an answer that shows many runs. */
export const ANSWER_CHARACTERS = 8 * 1024 * 1024

const NOTE_LIMIT = 64
const NOTE_BYTES = 16 * 1024

export async function currentSession(store: Store, agent: AgentRef): Promise<string> {
	const entry = await store.get<{ session_id: string }>(keys.session(agent.uid))
	// The first session needs no record: it goes by the agent's own uid.
	return entry?.value.session_id ?? agent.uid
}

/** Answers with the id of the new session. */
export async function newSession(store: Store, agent: AgentRef): Promise<string> {
	const old = await currentSession(store, agent)
	const session_id = newId()
	await change(store, agent.uid, async () => ({
		ops: [
			{ key: keys.session(agent.uid), value: { session_id, created_at: now() } },
			{ key: keys.shortTerm(agent.uid, old), value: undefined },
		],
		result: null,
	}))
	return session_id
}

/**
 * The newest turns, oldest first: 1,000 at most, and no more than fit into 8 Mi characters. A run that has not begun yet
 * is no part of it.
 */
export async function messagesOf(
	store: Store,
	agent: AgentRef,
	conversation: string,
	limit: number = HISTORY_TURNS,
): Promise<Message[]> {
	const runs: RunRecord[] = []
	let characters = 0
	for await (const run of newestFirst(store, agent, conversation)) {
		if (run.started_at === null) continue
		characters += sizeOf(run)
		if (characters > ANSWER_CHARACTERS && runs.length > 0) break
		runs.push(run)
		if (runs.length === limit) break
	}
	return runs.toReversed().flatMap((run, at, all) => messagesOfRun(run, all[at - 1]))
}

/** Characters that a client gets to see of a run, near enough. */
export function sizeOf({ prompt, answer }: RunRecord): number {
	return prompt.length + (answer?.length ?? 0)
}

/** Earlier turns as a model gets to see them. Turns without an answer are left out: a model takes roles in turn. */
export async function contextFor(store: Store, run: RunRecord): Promise<ChatMessage[]> {
	const turns: ChatMessage[][] = []
	let characters = 0
	for await (const earlier of newestFirst(store, { uid: run.agent_uid }, run.conversation, run.run_id)) {
		if (earlier.answer === null || earlier.tool_calls) continue
		characters += sizeOf(earlier)
		if (characters > CONTEXT_CHARACTERS) break
		turns.push([
			{ role: 'user', content: earlier.prompt },
			{ role: 'assistant', content: earlier.answer },
		])
		if (turns.length === CONTEXT_TURNS) break
	}
	return turns.toReversed().flat()
}

export async function readNotes(store: Store, uid: string, conversation: string): Promise<Record<string, unknown>> {
	return (await store.get<Record<string, unknown>>(keys.shortTerm(uid, conversation)))?.value ?? {}
}

/** `null` takes the note away. Answers with how many there are now. */
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
	return change<number>(store, uid, async () => {
		const place = keys.shortTerm(uid, conversation)
		const entry = await store.get<Record<string, unknown>>(place)
		const notes = new Map(Object.entries(entry?.value ?? {}))
		if (value === null) notes.delete(key)
		else notes.set(key, value)
		if (notes.size > NOTE_LIMIT)
			throw new Fault(
				'invalid_arguments',
				`short-term memory holds ${NOTE_LIMIT} keys at most; write null to one that is not needed any more`,
			)
		return { ops: [{ key: place, value: Object.fromEntries(notes), expect: entry?.rev ?? null }], result: notes.size }
	})
}

async function* newestFirst(
	store: Store,
	agent: Pick<AgentRef, 'uid'>,
	conversation: string,
	before?: string,
): AsyncGenerator<RunRecord> {
	const prefix = keys.turns(agent.uid, conversation)
	const after = before === undefined ? {} : { after: keys.turn(agent.uid, conversation, before) }
	for await (const { key } of store.list(prefix, { reverse: true, ...after })) {
		const entry = await store.get<RunRecord>(keys.run(agent.uid, key.at(-1) ?? ''))
		if (entry) yield entry.value
	}
}

/** `before`: the run before it in the conversation. */
function messagesOfRun(run: RunRecord, before: RunRecord | undefined): Message[] {
	const started_at = run.started_at ?? run.created_at
	// That it goes on is what its client says: only a prompt that stands there already is left out.
	const isSaid = run.goes_on && before?.prompt === run.prompt
	const messages: Message[] = isSaid ? [] : [{ role: 'user', content: run.prompt, timestamp: started_at }]
	if (run.answer !== null && !run.tool_calls)
		messages.push({ role: 'assistant', content: run.answer, timestamp: run.ended_at ?? started_at })
	return messages
}
