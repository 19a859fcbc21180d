/**
 * Summarizes the older turns of conversations before they leave their models' windows, in the background after a run. Each
 * summary is made of the one before and the turns that followed, and is stored before the next one is begun. A failed summary
 * changes nothing: the turns that it should cover are listed for the model instead.
 */
import { Fault, isFault, messageOf, toWire } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { ChatMessage } from '../../core/protocol.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { now } from '../../core/util/ids.ts'
import { openSemaphore } from '../../core/util/semaphore.ts'
import { leavingNext, leavingNow } from '../../sandbox/context/cut.ts'
import type { Leaving } from '../../sandbox/context/cut.ts'
import { charactersIn, marksBehind } from '../../sandbox/context/earlier.ts'
import { tokensIn } from '../../sandbox/context/estimate.ts'
import type { AgentRecord } from '../agents/contract.ts'
import { contextInput, isLong } from './context.ts'
import type { ContextRequest } from './context.ts'
import type { RunRecord, Runs, SummaryRecord } from './contract.ts'
import { newestFirst } from './conversation.ts'
import { keys } from './keys.ts'
import { nextRequest } from './next-request.ts'
import { readSummary, writeSummary } from './summary-record.ts'
import { askForSummary } from './summary-run.ts'
import { answerIn, linesOf, plainSummary, promptOf } from './summary-text.ts'
import { transcriptOf } from './transcript.ts'
import { isUnderWay, keyOf, whileUnderWay } from './under-way.ts'

/** Summaries that are made at the same time, of all agents. */
const AT_ONCE = 2
/** Turns that `compact` leaves as they are. */
const KEPT = 2
/** Tokens of the turns of one model call at most, and calls in a row: of a longer conversation the newest turns are summarized. */
const BLOCK_TOKENS = 24_000
const BLOCKS = 4
const BLOCK_LEAST = 300
/** Of the request: the instructions. */
const INSTRUCTIONS = 600
/** A longer summary helps no more. */
const CHARACTERS = 6_000
/** After failures in a row, so many ends of runs at most pass without another attempt. */
const MOST_SKIPPED = 32
const CONVERSATIONS = 10_000
/** Where people who are not the agent's own may speak, facts are stored only if the agent's config says so. */
const PUBLIC: readonly string[] = ['webhook', 'openai']

interface Turn {
	run: RunRecord
	messages: readonly ChatMessage[]
	/** As the model is shown it. */
	lines: string
	tokens: number
}

interface SummaryWork {
	agent: AgentRecord
	conversation: string
	request: ContextRequest
	leaving: Leaving
	previous: SummaryRecord | undefined
	/** What each model call gets. */
	blocks: Turn[][]
	/** Characters that the summary may have. */
	characters: number
}

/**
 * `ended`: a run has ended; returns at once, and what fails is reported by `context.summary_failed`. `compact` also cuts the
 * conversation after the summary, and throws `conflict` for an agent without summaries (`config.context.summary`), too.
 */
export function summariesOf(ctx: Context, runs: Runs): Pick<Runs, 'compact'> & { ended(run_id: string): void } {
	const places = openSemaphore(AT_ONCE)
	const failures = new BoundedMap<string, { times: number; skip: number }>(CONVERSATIONS)

	async function afterRun(run_id: string): Promise<void> {
		const run = await runs.find(run_id)
		const agent = run && (await ctx.use('agents').find(run.agent))
		if (!agent || agent.uid !== run.agent_uid || !wants(agent)) return
		const { conversation } = run
		const failed = failures.get(keyOf(agent.uid, conversation))
		if (failed && failed.skip-- > 0) return
		if (isUnderWay(agent.uid, conversation)) return
		await whileUnderWay(agent.uid, conversation, async () => {
			const work = await workOf(agent, conversation, leavingNext)
			if (work) await carryOut(work)
		})
	}

	async function workOf(
		agent: AgentRecord,
		conversation: string,
		choose: (input: Parameters<typeof leavingNext>[0]) => Leaving | null,
	): Promise<SummaryWork | null> {
		const request = await nextRequest(ctx, agent, conversation)
		const { input } = await contextInput(ctx, request)
		const leaving = choose(input)
		if (!leaving) return null
		const previous = await readSummary(ctx.store, agent.uid, conversation)
		const characters = Math.min(CHARACTERS, Math.max(200, charactersIn(leaving.most)))
		const most = Math.floor((input.budget * 0.75) / input.factor) - INSTRUCTIONS - tokensIn(previous?.text ?? '')
		const room = Math.max(BLOCK_LEAST, Math.min(BLOCK_TOKENS, most))
		const blocks = await blocksOf(ctx, agent, conversation, {
			after: previous?.through,
			through: leaving.through,
			room,
		})
		return { agent, conversation, request, leaving, previous, blocks, characters }
	}

	/** Never rejects. */
	async function carryOut(work: SummaryWork): Promise<void> {
		const { agent, conversation } = work
		const key = keyOf(agent.uid, conversation)
		try {
			const release = await places.take(ctx.signal)
			try {
				let summary = work.previous
				for (const block of work.blocks) {
					summary = await summarize(work, summary, block)
					if (!summary) return
				}
				failures.delete(key)
			} finally {
				release()
			}
		} catch (error) {
			// The run continues after the next start, and the next summary takes its answer.
			if (ctx.signal.aborted || isFault(error, 'not_found')) return
			const times = (failures.get(key)?.times ?? 0) + 1
			failures.set(key, { times, skip: Math.min(MOST_SKIPPED, 2 ** (times - 1) - 1) })
			const { code, message } = toWire(error)
			ctx.log.warn({ agent: agent.name, conversation, code }, `a conversation was not summarized: ${message}`)
			await ctx.emit({ event_type: 'context.summary_failed', payload: { conversation, code, message } }, agent.name)
		}
	}

	/** Undefined if the conversation was deleted meanwhile. */
	async function summarize(
		work: SummaryWork,
		previous: SummaryRecord | undefined,
		block: readonly Turn[],
	): Promise<SummaryRecord | undefined> {
		const { agent, conversation, characters } = work
		const { text, facts, run } = await textOf(work, previous, block)
		const [first, last] = [block[0]?.run, block.at(-1)?.run]
		if (!first || !last) return previous
		const record: SummaryRecord = {
			since: previous?.since ?? first.run_id,
			through: last.run_id,
			turns: (previous?.turns ?? 0) + block.length,
			text: ctx.redactor
				.of([{ uid: agent.uid }])
				.text(text, 'record')
				.slice(0, characters * 2),
			made_at: now(),
		}
		if (!(await writeSummary(ctx.store, agent.uid, conversation, record))) return undefined
		const memory_ids = await keep(agent, facts)
		const { since, through, turns } = record
		const payload = { conversation, since, through, turns, characters: record.text.length, memory_ids }
		await ctx.emit(
			{ event_type: 'context.summarized', payload: { ...payload, ...(run && { summary_run_id: run.run_id }) } },
			agent.name,
		)
		return record
	}

	async function textOf(
		{ agent, conversation, request, characters }: SummaryWork,
		previous: SummaryRecord | undefined,
		block: readonly Turn[],
	): Promise<{ text: string; facts: string[]; run?: RunRecord }> {
		const { models } = request
		const messages = block.map((turn) => turn.messages)
		if (models[0]?.kind === 'offline') return { text: plainSummary(previous?.text, messages, characters), facts: [] }
		const isPublic = block.some((turn) => PUBLIC.includes(turn.run.trigger))
		const lines = block.map((turn) => turn.lines)
		const facts = (agent.config.context?.facts ?? !isPublic) && ctx.extensions('facts').length > 0
		const prompt = promptOf(previous?.text, lines, { characters, facts })
		const run = await askForSummary(ctx, runs, agent, conversation, { prompt, models })
		const answer = answerIn(run.answer ?? '', run.finish_reason === 'length', lines.join('\n'), characters)
		if (answer.summary === '') throw new Fault('model_empty', `the model gave no summary in run ${run.run_id}`)
		return { text: answer.summary, facts: facts ? answer.facts : [], run }
	}

	/** The ids of what was stored. */
	async function keep(agent: AgentRecord, facts: readonly string[]): Promise<string[]> {
		const ids: string[] = []
		if (facts.length === 0) return ids
		for (const { plugin, value, run } of ctx.extensions('facts')) {
			try {
				ids.push(...(await run(() => value.keep(agent, facts))))
			} catch (error) {
				ctx.log.warn({ agent: agent.name, plugin }, `facts of a conversation were not stored: ${messageOf(error)}`)
			}
		}
		return ids
	}

	return {
		ended(run_id) {
			if (!isLong(run_id)) return
			afterRun(run_id).catch((error: unknown) => {
				if (!ctx.signal.aborted && !isFault(error, 'not_found'))
					ctx.log.error({ err: error, run_id }, 'a conversation could not be read for its summary')
			})
		},
		async compact(agent, conversation) {
			if (!wants(agent)) throw new Fault('conflict', `config.context.summary of agent "${agent.name}" is false`)
			if (isUnderWay(agent.uid, conversation))
				throw new Fault('conflict', 'a summary of this conversation is being made; wait for context.summarized')
			const planned = Promise.withResolvers<SummaryWork>()
			whileUnderWay(agent.uid, conversation, async () => {
				const work = await workOf(agent, conversation, (input) => leavingNow(input, KEPT))
				if (!work)
					throw new Fault(
						'conflict',
						`there is nothing to summarize: the newest ${KEPT} turns stay as they are, and a summary covers all before them`,
					)
				planned.resolve(work)
				await carryOut(work)
				await cutBehind(work)
			}).catch((error: unknown) => {
				planned.reject(error as Error)
				ctx.log.debug({ err: error }, 'a conversation was not compacted')
			})
			return (await planned.promise).blocks.flat().length
		},
	}

	/** The next run shows the summary in place of its turns, unless it failed. */
	async function cutBehind({ agent, conversation, leaving: { through, next, most } }: SummaryWork): Promise<void> {
		const summary = await readSummary(ctx.store, agent.uid, conversation)
		if (summary?.through !== through || next === null) return
		await ctx.store.put(keys.marks(agent.uid, conversation), marksBehind(summary, next, most))
	}
}

function wants({ config }: AgentRecord): boolean {
	return config.context?.summary !== false
}

/** The turns of `after` (exclusive) to `through`, oldest first; of a long conversation the newest. `room`: tokens of each block. */
async function blocksOf(
	ctx: Context,
	{ uid }: AgentRecord,
	conversation: string,
	{ after, through, room }: { after: string | undefined; through: string; room: number },
): Promise<Turn[][]> {
	const turns: Turn[] = []
	let sum = 0
	for await (const run of newestFirst(ctx.store, { uid }, conversation)) {
		if (after !== undefined && run.run_id <= after) break
		if (run.run_id > through || run.started_at === null || run.tool_calls) continue
		const messages = await transcriptOf(ctx, run)
		const lines = linesOf(messages, room * 2)
		const tokens = tokensIn(lines)
		sum += tokens
		if (sum > room * BLOCKS && turns.length > 0) break
		turns.push({ run, messages, lines, tokens })
	}
	const blocks: Turn[][] = []
	let left = -1
	for (const turn of turns.toReversed()) {
		left -= turn.tokens
		if (left >= 0) blocks.at(-1)?.push(turn)
		else {
			blocks.push([turn])
			left = room - turn.tokens
		}
	}
	return blocks
}
