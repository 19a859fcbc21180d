/** Responses that are kept, so that others can go on from them: for as long as their runs. */
import { questionBelow, questionText } from '../../core/answer-stream.ts'
import { isFault } from '../../core/errors.ts'
import type { WireError } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { ChatMessage } from '../../core/protocol.ts'
import type { Key, Op } from '../../core/store/ports.ts'
import type { RunRecord } from '../runs/contract.ts'
import { wrong } from './errors.ts'
import type { Answer } from './exchange.ts'
import { callId, hexOf, responseId, responseIn } from './ids.ts'

export interface StoredResponse {
	/** As clients know it. */
	id: string
	agent: AgentRef
	run_id: string
	conversation: string
	/** The gateway keeps that conversation: its runs are what was said before. */
	named: boolean
	previous_response_id: string | null
	/** Seconds since 1970. */
	created_at: number
	/** What of the request an answer repeats, under its names. */
	echo: Record<string, unknown>
	/** What was new in its request, without system messages. */
	input: ChatMessage[]
	/** Absent until the request has ended. */
	end?: ResponseEnd
}

export type ResponseEnd = { at: number } & ({ answer: Answer } | { error: WireError })

type Place = Pick<Context, 'store' | 'use'>

const KIND = 'openai-response'
/** What of earlier responses a model is shown: whichever limit is met first. */
const CHAIN_LIMIT = 50
const CHAIN_CHARACTERS = 200_000

/** Where one stands whose own id is `id`, a UUID. */
export function newPlace(agent: AgentRef, id: string): { id: string; key: Key } {
	return { id: responseId(agent.uid, id), key: keyOf(agent.uid, hexOf(id)) }
}

export function creation(key: Key, value: StoredResponse): Op {
	return { key, value, expect: null }
}

/** Undefined where there is none, or none any more. How it ended is looked up where its request could not write it. */
export async function readResponse(ctx: Place, id: string): Promise<StoredResponse | undefined> {
	const place = responseIn(id)
	const entry = place && (await ctx.store.get<StoredResponse>(keyOf(place.uid, place.id)))
	if (!entry) return undefined
	const { value } = entry
	// Of an agent whose deletion is under way nothing is left to see.
	if ((await ctx.use('agents').find(value.agent.name))?.uid !== value.agent.uid) return undefined
	if (value.end) return value
	const run = await runOf(ctx, value.run_id)
	const end = run && (await endOf(ctx, run))
	return end ? { ...value, end } : value
}

/** Nothing happens where it was deleted meanwhile. */
export async function writeEnd({ store }: Pick<Context, 'store'>, key: Key, end: ResponseEnd): Promise<void> {
	const entry = await store.get<StoredResponse>(key)
	if (!entry) return
	try {
		await store.update(key, { ...entry.value, end }, entry.rev)
	} catch (error) {
		if (!isFault(error, 'conflict')) throw error // deleted: nobody else changes it
	}
}

export async function deleteResponse({ store }: Pick<Context, 'store'>, { id }: StoredResponse): Promise<void> {
	const place = responseIn(id)
	if (place) await store.delete(keyOf(place.uid, place.id))
}

/** What was said up to a response and in it, oldest first: as far back as they are kept, and the newest 50 at most. */
export async function chainOf(ctx: Place, newest: StoredResponse): Promise<ChatMessage[]> {
	const turns: ChatMessage[][] = []
	let characters = 0
	let next: StoredResponse | undefined = newest
	while (next && turns.length < CHAIN_LIMIT) {
		const messages = messagesOf(next)
		characters += JSON.stringify(messages).length
		if (characters > CHAIN_CHARACTERS && turns.length > 0) break
		turns.push(messages)
		const before: string | null = next.previous_response_id
		next = before === null ? undefined : await readResponse(ctx, before)
	}
	const messages = turns.toReversed().flat()
	// Where it was cut, results may have lost their calls.
	return messages.slice(
		Math.max(
			0,
			messages.findIndex(({ role }) => role === 'user'),
		),
	)
}

/** Forgets those whose runs are forgotten. */
export async function sweep(ctx: Place & Pick<Context, 'signal'>): Promise<void> {
	for await (const { uid } of ctx.use('agents').list()) {
		for await (const { key, value } of ctx.store.list<StoredResponse>([scopeOf(uid), KIND])) {
			// Ids sort by time, and so are runs forgotten.
			if (ctx.signal.aborted || (await runOf(ctx, value.run_id))) break
			await ctx.store.delete(key)
		}
	}
}

export function missing(id: string, param: string): Error {
	return wrong(param, `there is no response "${id}"; it may have been deleted, or sent with store: false`, 'not_found')
}

function messagesOf({ input, end }: StoredResponse): ChatMessage[] {
	if (!end || !('answer' in end)) return input
	const { text, tool_calls } = end.answer
	return [...input, { role: 'assistant', content: text, tool_calls }]
}

/** How the request ended, by its run; undefined as long as it goes on. */
async function endOf(ctx: Place, run: RunRecord): Promise<ResponseEnd | undefined> {
	const { run_id, status, answer, usage } = run
	const at = Math.floor(Date.parse(run.ended_at ?? run.created_at) / 1000)
	const answered: Omit<Answer, 'text'> = { tool_calls: [], finish_reason: 'stop', usage }
	switch (status) {
		case 'completed': {
			const tool_calls = (run.tool_calls ?? []).map((call, n) => ({ ...call, id: callId(run_id, n) }))
			const finish_reason = tool_calls.length > 0 ? 'tool_calls' : 'stop'
			return { at, answer: { ...answered, text: answer ?? '', tool_calls, finish_reason } }
		}
		case 'failed':
			return { at, error: run.error ?? { code: 'internal', message: 'the run failed' } }
		case 'stopped':
			return { at, error: { code: 'stopped', message: 'the run was stopped' } }
		default: {
			const asked = await ctx.use('runs').asked(run)
			if (!asked) return undefined
			const words = questionText(asked)
			const text = asked.run_id === run_id ? words : questionBelow(words)
			return { at, answer: { ...answered, text } }
		}
	}
}

async function runOf(ctx: Place, run_id: string): Promise<RunRecord | undefined> {
	try {
		return await ctx.use('runs').get(run_id)
	} catch (error) {
		if (isFault(error, 'not_found')) return undefined
		throw error
	}
}

function keyOf(uid: string, id: string): Key {
	return [scopeOf(uid), KIND, id]
}

function scopeOf(uid: string): string {
	return `agent:${uid}`
}
