/** The session of an agent, and the messages of a conversation. */
import { Fault } from '../../core/errors.ts'
import { newId, now } from '../../core/util/ids.ts'
import type { AgentRef } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { change } from '../../core/store/change.ts'
import type { Key, Op, Store } from '../../core/store/ports.ts'
import type { Message, RunRecord } from './contract.ts'
import { keys } from './keys.ts'

const HISTORY_TURNS = 1_000
/** Characters of a response that shows many runs. */
export const ANSWER_CHARACTERS = 8 * 1024 * 1024

export async function currentSession(store: Store, agent: AgentRef): Promise<string> {
	const entry = await store.get<{ session_id: string }>(keys.session(agent.uid))
	// The first session needs no record: its id is the agent's own uid.
	return entry?.value.session_id ?? agent.uid
}

/** Throws `not_found` for a conversation without runs, unless it is the current session. */
export async function mustExist(store: Store, agent: AgentRef, conversation: string): Promise<void> {
	if (await hasTurns(store, agent.uid, conversation)) return
	if (conversation !== (await currentSession(store, agent))) throw noConversation(agent, conversation)
}

export async function hasTurns(store: Store, uid: string, conversation: string): Promise<boolean> {
	return (await firstOf(store.keys(keys.turns(uid, conversation), { limit: 1 }))) !== undefined
}

export async function firstOf<T>(items: AsyncIterable<T>): Promise<T | undefined> {
	for await (const item of items) return item
	return undefined
}

export function noConversation(agent: AgentRef, conversation: string): Fault {
	const hint = { route: 'GET /v1/agents/{name}/conversations', params: { name: agent.name }, does: 'lists them' }
	return new Fault('not_found', `agent "${agent.name}" has no conversation "${conversation.slice(0, 200)}"`, { hint })
}

/**
 * Begins a new session without the notes of the old one. Returns both ids. `forget`: marks the old one for
 * deletion, in the same write.
 */
export async function newSession(
	store: Store,
	agent: AgentRef,
	forget = false,
): Promise<{ session_id: string; old: string }> {
	const session_id = newId()
	return change(store, agentScope(agent.uid), async () => {
		const session = await store.get<{ session_id: string }>(keys.session(agent.uid))
		const old = session?.value.session_id ?? agent.uid
		const ops: Op[] = [
			{ key: keys.session(agent.uid), value: { session_id, created_at: now() }, expect: session?.rev ?? null },
			{ key: keys.shortTerm(agent.uid, old), value: undefined },
		]
		if (forget) ops.push({ key: keys.forgetting(agent.uid, old), value: { at: now() } })
		return { ops, result: { session_id, old } }
	})
}

/**
 * The newest turns, oldest first: at most 1,000, and at most 8 Mi characters. A run that has not begun yet
 * is not included.
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

/** Approximate number of characters that a client receives for a run. */
export function sizeOf({ prompt, answer }: RunRecord): number {
	return prompt.length + (answer?.length ?? 0)
}

/** The runs of a conversation, newest first; those before `before` if given. */
export async function* newestFirst(
	store: Store,
	agent: Pick<AgentRef, 'uid'>,
	conversation: string,
	before?: string,
): AsyncGenerator<RunRecord> {
	for await (const key of newestTurns(store, agent, conversation, before)) {
		const entry = await store.get<RunRecord>(keys.run(agent.uid, runOf(key)))
		if (entry) yield entry.value
	}
}

/** The keys of the turns, newest first, without reading the runs. */
export function newestTurns(
	store: Store,
	{ uid }: Pick<AgentRef, 'uid'>,
	conversation: string,
	before?: string,
	limit: number = Infinity,
): AsyncIterable<Key> {
	const after = before === undefined ? {} : { after: keys.turn(uid, conversation, before) }
	return store.keys(keys.turns(uid, conversation), { reverse: true, limit, ...after })
}

/** The run's id in the key of a turn. */
export function runOf(key: Key): string {
	return key.at(-1) ?? ''
}

/** `before`: the run before it in the conversation. */
export function messagesOfRun(run: RunRecord, before: RunRecord | undefined): Message[] {
	const started_at = run.started_at ?? run.created_at
	// Only the client states that the run continues the one before: so the prompt is omitted only if both are the same.
	const isRepeated = run.goes_on && before?.prompt === run.prompt
	const { prompt, attachments } = run
	const message = { content: prompt, ...(attachments && { attachments }) }
	const messages: Message[] = isRepeated || run.said ? [] : [{ role: 'user', ...message, timestamp: started_at }]
	if (run.answer !== null && !run.tool_calls)
		messages.push({
			role: 'assistant',
			content: run.answer,
			...(run.files && { attachments: run.files }),
			timestamp: run.ended_at ?? started_at,
		})
	return messages
}
