/**
 * Summarizes the older turns of conversations before requests omit them, in the background after a run. Each summary is made
 * from the previous one and the turns after it, and is stored before the next one begins. A failed summary changes
 * nothing: the model gets a list of the turns that it should cover.
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
import { nextRequest } from './compose-order.ts'
import { contextInput, isLong } from './context.ts'
import type { ContextRequest } from './context.ts'
import type { RunRecord, Runs, SummaryRecord } from './contract.ts'
import { newestFirst } from './conversation.ts'
import { conversationKey, keys } from './keys.ts'
import { isSummarizing, readSummary, trackSummary, writeSummary } from './summary-record.ts'
import { askForSummary } from './summary-run.ts'
import { answerIn, linesOf, plainSummary, promptOf } from './summary-text.ts'
import { transcriptOf } from './transcript.ts'

/** Concurrent summaries of all agents. */
const CONCURRENT = 2
/** The newest turns, which `compact` does not summarize. */
const KEPT_TURNS = 2
/** Tokens of the turns of one model call. */
const MAX_BLOCK_TOKENS = 24_000
const MIN_BLOCK_TOKENS = 300
/** Model calls of one summary. Of a conversation that needs more, only the newest turns are summarized. */
const BLOCKS = 4
/** Tokens of the instructions in each request. */
const INSTRUCTIONS = 600
/** Maximum length of a summary: a longer one helps no more. */
const CHARACTERS = 6_000
/** Maximum runs without another attempt after consecutive failures. */
const MAX_SKIPPED = 32
const CONVERSATIONS = 10_000
/** Triggers of runs in which strangers may speak: facts of these are stored only if `config.context.facts` is true. */
const PUBLIC: readonly string[] = ['webhook', 'openai']

interface Turn {
	run: RunRecord
	messages: readonly ChatMessage[]
	/** The turn as text for the model. */
	lines: string
	tokens: number
}

interface SummaryWork {
	agent: AgentRecord
	conversation: string
	request: ContextRequest
	leaving: Leaving
	previous: SummaryRecord | undefined
	/** The turns of each model call. */
	blocks: Turn[][]
	/** Characters that the summary may have. */
	characters: number
}

/**
 * `ended` is called when a run has ended. It returns at once; `context.summary_failed` reports errors. `compact` also cuts the
 * conversation after the summary. In addition to the errors of `Runs.compact`, it throws `conflict` for an agent without
 * summaries (`config.context.summary`).
 */
export function summariesOf(ctx: Context, runs: Runs): Pick<Runs, 'compact'> & { ended(run_id: string): void } {
	const places = openSemaphore(CONCURRENT)
	const failures = new BoundedMap<string, { times: number; skip: number }>(CONVERSATIONS)

	async function afterRun(run_id: string): Promise<void> {
		const run = await runs.find(run_id)
		const agent = run && (await ctx.use('agents').find(run.agent))
		if (!agent || agent.uid !== run.agent_uid || !isEnabled(agent)) return
		const { conversation } = run
		const failed = failures.get(conversationKey(agent.uid, conversation))
		if (failed && failed.skip-- > 0) return
		if (isSummarizing(agent.uid, conversation)) return
		await trackSummary(agent.uid, conversation, async () => {
			const work = await planFor(agent, conversation, leavingNext)
			if (work) await summarizeBlocks(work)
		})
	}

	/** Null if there is nothing to summarize. */
	async function planFor(
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
		const room = Math.max(MIN_BLOCK_TOKENS, Math.min(MAX_BLOCK_TOKENS, most))
		const turns = { after: previous?.through, through: leaving.through, room }
		const blocks = await blocksOf(ctx, agent, conversation, turns)
		return { agent, conversation, request, leaving, previous, blocks, characters }
	}

	/** Never rejects. */
	async function summarizeBlocks(work: SummaryWork): Promise<void> {
		const { agent, conversation } = work
		const key = conversationKey(agent.uid, conversation)
		try {
			const release = await places.acquire({ signal: ctx.signal })
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
			// The summary's run continues after the next start, and the next summary uses its answer.
			if (ctx.signal.aborted || isFault(error, 'not_found')) return
			const times = (failures.get(key)?.times ?? 0) + 1
			failures.set(key, { times, skip: Math.min(MAX_SKIPPED, 2 ** (times - 1) - 1) })
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
		const redactor = ctx.redactor.of([{ uid: agent.uid }])
		const record: SummaryRecord = {
			since: previous?.since ?? first.run_id,
			through: last.run_id,
			turns: (previous?.turns ?? 0) + block.length,
			text: redactor.text(text, 'record').slice(0, characters * 2),
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
		if (answer.summary === '') throw new Fault('model_empty', `the model returned no summary in run ${run.run_id}`)
		return { text: answer.summary, facts: facts ? answer.facts : [], run }
	}

	/** Stores facts. Returns the ids of their memories. */
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
			if (!isEnabled(agent)) throw new Fault('conflict', `config.context.summary of agent "${agent.name}" is false`)
			if (isSummarizing(agent.uid, conversation))
				throw new Fault('conflict', 'this conversation is already being summarized; wait for context.summarized')
			const planned = Promise.withResolvers<SummaryWork>()
			trackSummary(agent.uid, conversation, async () => {
				const work = await planFor(agent, conversation, (input) => leavingNow(input, KEPT_TURNS))
				if (!work)
					throw new Fault(
						'conflict',
						`there is nothing to summarize: the newest ${KEPT_TURNS} turns stay as they are, and a summary covers all earlier ones`,
					)
				planned.resolve(work)
				await summarizeBlocks(work)
				await cutAfterSummary(work)
			}).catch((error: unknown) => {
				planned.reject(error as Error)
				ctx.log.debug({ err: error }, 'a conversation was not compacted')
			})
			return (await planned.promise).blocks.flat().length
		},
	}

	/** Makes the next run use the summary in place of its turns, unless the summary failed. */
	async function cutAfterSummary({ agent, conversation, leaving }: SummaryWork): Promise<void> {
		const summary = await readSummary(ctx.store, agent.uid, conversation)
		if (summary?.through !== leaving.through || leaving.next === null) return
		await ctx.store.put(keys.marks(agent.uid, conversation), marksBehind(summary, leaving.next, leaving.most))
	}
}

function isEnabled({ config }: AgentRecord): boolean {
	return config.context?.summary !== false
}

/**
 * The turns after `after` up to and including `through`, oldest first, in blocks of `room` tokens. Of a long conversation only
 * the newest turns, for `BLOCKS` such blocks.
 */
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
