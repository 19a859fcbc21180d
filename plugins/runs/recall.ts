/** `conversation.search` and `conversation.read`: the complete conversation, including turns that requests omit. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault } from '../../core/errors.ts'
import type { Context, ToolCall } from '../../core/plugin.ts'
import type { ChatMessage } from '../../core/protocol.ts'
import { isName } from '../../core/store/keys.ts'
import { openSemaphore } from '../../core/util/semaphore.ts'
import { isInside, partOf } from '../shared/part-of.ts'
import { newestFirst } from './conversation.ts'
import type { JournalStep } from './journal-step.ts'
import { parseResultId, readResult } from './results.ts'
import { transcriptOf } from './transcript.ts'
import { readRun } from './records.ts'

type RecallDeps = Pick<Context, 'store' | 'events'>

const RESULTS = 5
const SNIPPET = 300
const PART = 4_000
const LARGEST_PART = 65_536
/** Turns and characters that one search reads, newest first. */
const SEARCHED = 20_000
const SEARCHED_CHARACTERS = 64 * 1024 * 1024
/** Turns or characters after which a search yields to other work. */
const SLICE_TURNS = 50
const SLICE_CHARACTERS = 128 * 1024
/** Concurrent searches of all agents; further ones wait. */
const SEARCHES = 2
const searches = openSemaphore(SEARCHES)

export function addRecall(ctx: Pick<Context, 'primitive' | 'extend'> & RecallDeps): void {
	ctx.extend('prompt', {
		stable: () =>
			'You may be shown only the later part of a conversation. All of it is kept: conversation.search finds earlier turns by words, conversation.read shows a turn by its run_id, or a result by its result_id. Look there before you say that you do not remember.',
	})
	ctx.primitive({
		name: 'conversation.search',
		description:
			'Finds turns of this conversation by words in their messages and tool results, including turns that you no longer see. Returns their run_id, for conversation.read.',
		parameters: Joi.object({
			query: Joi.string().min(1).max(1_000).required().description('A few words of the turn.'),
			limit: Joi.number().integer().min(1).max(50).description(`Maximum number of turns; default ${RESULTS}.`),
		}),
		async run(args, call) {
			const release = await searches.acquire({ signal: call.signal })
			try {
				return await search(ctx, args as unknown as Search, call)
			} finally {
				release()
			}
		},
	})
	ctx.primitive({
		name: 'conversation.read',
		description: 'Reads a turn of this conversation by its run_id, or the result of a tool by its result_id, in parts.',
		parameters: Joi.object({
			run_id: Joi.string().max(64).description('A turn: its messages, calls and results.'),
			result_id: Joi.string().max(200).description('A result that was omitted or abridged.'),
			offset: Joi.number().integer().min(0).description('The first character; default 0.'),
			limit: Joi.number().integer().min(1).max(LARGEST_PART).description(`Characters; default ${PART}.`),
		}).xor('run_id', 'result_id'),
		run: (args, call) => read(ctx, args as RecallRequest, call),
	})
}

interface Search {
	query: string
	limit?: number
}

interface RecallRequest {
	run_id?: string
	result_id?: string
	offset?: number
	limit?: number
}

async function read(
	ctx: RecallDeps,
	{ run_id, result_id, offset = 0, limit = PART }: RecallRequest,
	{ agent, conversation }: ToolCall,
): Promise<unknown> {
	const result = result_id === undefined ? undefined : parseResultId(result_id)
	const id = result?.run_id ?? run_id ?? ''
	if (!isName(id)) throw unknown(result_id ?? id)
	const run = await readRun(ctx.store, agent.uid, id)
	if (run?.conversation !== conversation) throw unknown(result_id ?? id)
	if (result_id === undefined) {
		const text = (await transcriptOf(ctx, run)).map(textOf).join('\n\n')
		return { run_id: id, at: run.started_at ?? run.created_at, ...partOf(text, offset, limit) }
	}
	const stored = await readResult(ctx.store, agent.uid, result_id, { offset, limit })
	if (stored) return { result_id, ...stored }
	const steps = (await ctx.events.journal(id)).steps as readonly JournalStep[]
	const step = steps.find((one) => one.kind === 'tool' && result?.isOf(one.call_id))
	if (step?.kind !== 'tool') throw unknown(result_id)
	return { result_id, ...partOf(step.content, offset, limit) }
}

async function search(
	ctx: RecallDeps,
	{ query, limit = RESULTS }: Search,
	{ agent, conversation, run_id, signal }: ToolCall,
): Promise<unknown> {
	const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}]+/gu))]
	if (words.length === 0) throw new Fault('invalid_arguments', 'the query must contain a word or a number')
	let found: { run_id: string; at: string; matches: number; text: string }[] = []
	let searched = 0
	let characters = 0
	/** Read since the search last yielded. */
	let slice = { turns: 0, characters: 0 }
	for await (const run of newestFirst(ctx.store, agent, conversation, run_id)) {
		if (signal.aborted || searched === SEARCHED || characters > SEARCHED_CHARACTERS) break
		if (run.started_at === null) continue
		searched++
		const text = (await transcriptOf(ctx, run)).map(textOf).join('\n')
		characters += text.length
		slice = { turns: slice.turns + 1, characters: slice.characters + text.length }
		if (slice.turns === SLICE_TURNS || slice.characters > SLICE_CHARACTERS) {
			slice = { turns: 0, characters: 0 }
			await nextTurn()
		}
		const lower = text.toLowerCase()
		const places = words.map((word) => lower.indexOf(word)).filter((at) => at >= 0)
		if (places.length === 0) continue
		const near = Math.max(0, Math.min(...places) - SNIPPET / 3)
		const begin = isInside(text, near) ? near - 1 : near
		const snippet = partOf(text, begin, SNIPPET).text
		found.push({ run_id: run.run_id, at: run.started_at, matches: places.length, text: snippet })
		if (found.length >= 4 * limit + 100) found = best(found, limit)
	}
	const turns = best(found, limit)
	return { turns, searched, ...(turns.length === 0 && { hint: 'no turn contains any of these words; try others' }) }
}

/** Those with the most matches first; with equal matches the newest first. */
function best<T extends { matches: number; run_id: string }>(found: T[], limit: number): T[] {
	return found.toSorted((a, b) => b.matches - a.matches || (a.run_id < b.run_id ? 1 : -1)).slice(0, limit)
}

function textOf(message: ChatMessage): string {
	if (message.role === 'user') return `user: ${message.content}`
	if (message.role === 'tool') return `result of ${message.name}: ${message.content}`
	const calls = (message.tool_calls ?? []).map(({ name, arguments: args }) => `call of ${name}: ${args}`)
	return [...(message.content === '' ? [] : [`you: ${message.content}`]), ...calls].join('\n')
}

function unknown(id: string): Fault {
	return new Fault(
		'not_found',
		`this conversation has no turn or result "${id.slice(0, 100)}"; conversation.search returns the ids of those that exist`,
	)
}
