/** Stored responses, which later ones can continue. They are kept as long as their runs. */
import { isFault } from '../../core/errors.ts'
import type { WireError } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { ChatMessage } from '../../core/protocol.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import type { Key } from '../../core/store/ports.ts'
import type { RunRecord } from '../runs/contract.ts'
import { existedAt } from './conversations.ts'
import { paramError } from './errors.ts'
import { finishReasonOf, ownCalls } from './exchange.ts'
import type { AgentAnswer } from './exchange.ts'
import { hexOf, parseResponseId, responseId } from './ids.ts'

export interface StoredResponse {
	/** The id that clients see. */
	id: string
	agent: AgentRef
	/** As `ownerOf`. Only the owner can read, continue or delete the response. Absent in responses of 0.1.0. */
	owner?: string
	run_id: string
	conversation: string
	/** Whether the conversation has a name: then its runs are the history. */
	named: boolean
	previous_response_id: string | null
	/** Seconds since 1970. */
	created_at: number
	/** The fields of the request that the response repeats. */
	echo: Record<string, unknown>
	/** The new messages of the request, without system messages. */
	input: ChatMessage[]
	/** Absent until the request has ended. */
	end?: ResponseEnd
}

export type ResponseEnd = { at: number } & ({ answer: AgentAnswer } | { error: WireError })

type StoredDeps = Pick<Context, 'store' | 'use'>

const KIND = 'openai-response'
/** Limits of the earlier responses that a model gets, in responses and in characters. */
const CHAIN_LIMIT = 50
const CHAIN_CHARACTERS = 200_000

/** The id that clients see, and the key, of a new response. `id`: a UUID. */
export function newPlace(agent: AgentRef, id: string): { id: string; key: Key } {
	return { id: responseId(agent.uid, id), key: keyOf(agent.uid, hexOf(id)) }
}

/** Undefined if this owner has no such response. If the request could not store its end, it is made from the run. */
export async function readResponse(ctx: StoredDeps, id: string, owner: string): Promise<StoredResponse | undefined> {
	const place = parseResponseId(id)
	const entry = place && (await ctx.store.get<StoredResponse>(keyOf(place.uid, place.id)))
	if (!entry) return undefined
	const { value } = entry
	if (!(await isOwner(ctx, value, owner))) return undefined
	// An agent that is being deleted counts as deleted.
	if ((await ctx.use('agents').find(value.agent.name))?.uid !== value.agent.uid) return undefined
	if (value.end) return value
	const run = await ctx.use('runs').find(value.run_id)
	const end = run && (await endOf(ctx, run))
	return end ? { ...value, end } : value
}

/** A response of 0.1.0 has no owner: any caller that existed then and knows its unguessable id may use it. */
async function isOwner(ctx: StoredDeps, record: StoredResponse, owner: string): Promise<boolean> {
	if (record.owner !== undefined) return record.owner === owner
	return existedAt(ctx, owner, new Date(record.created_at * 1000 + 999).toISOString())
}

/** Does nothing if the response has been deleted. */
export async function writeEnd({ store }: Pick<Context, 'store'>, key: Key, end: ResponseEnd): Promise<void> {
	const entry = await store.get<StoredResponse>(key)
	if (!entry) return
	try {
		await store.update(key, { ...entry.value, end }, entry.rev)
	} catch (error) {
		if (!isFault(error, 'conflict')) throw error // deleted: nothing else changes it
	}
}

export async function deleteResponse({ store }: Pick<Context, 'store'>, { id }: StoredResponse): Promise<void> {
	const place = parseResponseId(id)
	if (place) await store.delete(keyOf(place.uid, place.id))
}

/** The messages of a response and of at most 49 stored ones before it, oldest first. */
export async function chainOf(ctx: StoredDeps, newest: StoredResponse, owner: string): Promise<ChatMessage[]> {
	const turns: ChatMessage[][] = []
	let characters = 0
	let next: StoredResponse | undefined = newest
	while (next && turns.length < CHAIN_LIMIT) {
		const messages = messagesOf(next)
		characters += JSON.stringify(messages).length
		if (characters > CHAIN_CHARACTERS && turns.length > 0) break
		turns.push(messages)
		const before: string | null = next.previous_response_id
		next = before === null ? undefined : await readResponse(ctx, before, owner)
	}
	const messages = turns.toReversed().flat()
	// The oldest response kept may begin with results whose calls were omitted.
	const first = messages.findIndex(({ role }) => role === 'user')
	return messages.slice(Math.max(0, first))
}

/** Deletes responses whose runs were deleted. */
export async function sweep(ctx: StoredDeps & Pick<Context, 'signal'>): Promise<void> {
	for await (const { uid } of ctx.use('agents').list()) {
		for await (const { key, value } of ctx.store.list<StoredResponse>([agentScope(uid), KIND])) {
			// Ids sort by time, and runs are deleted in that order.
			if (ctx.signal.aborted || (await ctx.use('runs').find(value.run_id))) break
			await ctx.store.delete(key)
		}
	}
}

export function missing(id: string, param: string): Error {
	return paramError(
		param,
		`there is no response "${id}"; it may have been deleted, or sent with store: false`,
		'not_found',
	)
}

function messagesOf({ input, end }: StoredResponse): ChatMessage[] {
	if (!end || !('answer' in end)) return input
	const { text, tool_calls } = end.answer
	return [...input, { role: 'assistant', content: text, tool_calls }]
}

/** How the request ended, according to its run; undefined if it has not. */
async function endOf(ctx: StoredDeps, run: RunRecord): Promise<ResponseEnd | undefined> {
	const result = await ctx.use('runs').result(run)
	if (!result) return undefined
	const { run_id, tool_calls = [], usage } = run
	const at = Math.floor(Date.parse(run.ended_at ?? run.created_at) / 1000)
	if (result.error) return { at, error: result.error }
	const finish_reason = tool_calls.length > 0 ? 'tool_calls' : finishReasonOf(run.finish_reason)
	return { at, answer: { text: result.text, tool_calls: ownCalls(run_id, tool_calls), finish_reason, usage } }
}

function keyOf(uid: string, id: string): Key {
	return [agentScope(uid), KIND, id]
}
