/**
 * From a claimed job to the run's end, or to its next question.
 *
 * The run's log is the truth and its record follows from it: a step, or the end, is durable in the log before anything
 * is built on it. So whatever a crash leaves behind, reading the log tells where to go on.
 */
import { createHash } from 'node:crypto'
import { Fault, isFault, toWire } from '../../core/errors.ts'
import type { WireError } from '../../core/errors.ts'
import { now } from '../../core/ids.ts'
import type { Context, QuestionText } from '../../core/plugin.ts'
import { usageOf } from '../../core/protocol.ts'
import type { NewEvent, RunOrder, RunOutcome, Step, ToolCallRequest, ToolReply, Usage } from '../../core/protocol.ts'
import type { JournalStep, RunLog } from '../../core/run-log.ts'
import { answeredCall, callTool, specOf } from '../../core/toolbox.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type {} from '../models/contract.ts'
import { contextFor } from './conversation.ts'
import type { Question, RunRecord, RunSettings } from './contract.ts'
import { endIn, eventsOfAnswer, pendingCall } from './journal.ts'
import { keys } from './keys.ts'
import { change, endRun, isEnded } from './records.ts'
import { withRun } from './turns.ts'
import type { Turn } from './turns.ts'

/** A step that brings the gateway, or its thread, down this often is not tried again. */
const RESTART_LIMIT = 3

type Place = Context<RunSettings>

/** Answers with the run that becomes active behind it, to be enqueued. Throws only where the log or store cannot be written. */
export function execute(ctx: Place, uid: string, run_id: string): Promise<RunRecord | null> {
	return withRun(run_id, async (turn) => {
		for (;;) {
			const entry = await ctx.store.get<RunRecord>(keys.run(uid, run_id))
			if (!entry || isEnded(entry.value.status) || entry.value.status === 'queued') return null
			const run = entry.value
			const log = await ctx.events.openRun({ run_id, agent_id: run.agent })
			try {
				return await executeOnce(ctx, run, log, turn)
			} catch (error) {
				// What can never be written will not be at the next try either, and each try asks the model again.
				if (isFault(error, 'payload_too_large', 'invalid_request')) return await giveUp(ctx, run, toWire(error), turn)
				// The thread died under it, perhaps because of another run: the journal has all that was done.
				if (!isFault(error, 'thread_lost') || ctx.gateway.state() === 'draining') throw error
				ctx.log.warn({ run_id }, 'the thread of a run was lost; the run goes on from its journal')
			} finally {
				log.close()
			}
		}
	})
}

async function giveUp(ctx: Place, run: RunRecord, error: WireError, turn: Turn): Promise<RunRecord | null> {
	const log = await ctx.events.openRun({ run_id: run.run_id, agent_id: run.agent })
	try {
		const usage = usageOf(log.journal.steps as JournalStep[])
		return await finish(ctx, run, log, { status: 'failed', error, usage }, turn)
	} finally {
		log.close()
	}
}

async function executeOnce(ctx: Place, run: RunRecord, log: RunLog, turn: Turn): Promise<RunRecord | null> {
	const journal = log.journal.steps as JournalStep[]
	const ended = endIn(log)
	if (ended) return endRun(ctx.store, run.agent_uid, run.run_id, ended, log.journal.lastEvent?.timestamp ?? now())

	const agent = await ctx.use('agents').find(run.agent)
	if (!agent || agent.uid !== run.agent_uid) return null // deleted; whoever deletes it sweeps its runs

	const began = Date.now()
	const taken = await takeUp(ctx, run, agent, log, journal)
	if (taken === 'waits') {
		// The gateway may have died before the record could follow.
		await pause(ctx, run, String(log.journal.lastEvent?.payload.question_id), usageOf(journal), run.active_ms)
		return null
	}
	if (taken !== 'goes on')
		return finish(ctx, run, log, { status: 'failed', error: taken, usage: usageOf(journal) }, turn)
	const outcome = await think(ctx, run, agent, log, journal, turn)
	if (outcome.status !== 'paused') return finish(ctx, run, log, outcome, turn)
	await pause(ctx, run, outcome.question_id, usageOf(journal), run.active_ms + (Date.now() - began))
	return null
}

/** Writes how the run begins, or goes on. Answers with an error where it must not. */
async function takeUp(
	ctx: Place,
	run: RunRecord,
	agent: AgentRecord,
	log: RunLog,
	journal: JournalStep[],
): Promise<'goes on' | 'waits' | WireError> {
	const { last, lastEvent } = log.journal
	if (last === 0 || lastEvent?.event_type === 'run.queued') {
		const events: NewEvent[] = [
			{ event_type: 'run.started', payload: { trigger: run.trigger, conversation: run.conversation } },
		]
		if (agent.persona) events.push({ event_type: 'message.system', payload: { content: agent.persona } })
		events.push({ event_type: 'message.user', payload: { content: run.prompt } })
		watched(log.append(events))
		return 'goes on'
	}
	if (lastEvent?.event_type === 'run.paused') {
		const question = await ctx.store.get<Question>(keys.question(run.agent_uid, String(lastEvent.payload.question_id)))
		if (!question || question.value.answer === null) return 'waits'
		await resume(ctx, agent, log, journal, question.value, question.value.answer)
		return 'goes on'
	}
	const restarts = journal.length - (journal.findLastIndex((step) => step.kind === 'model' || step.kind === 'tool') + 1)
	if (journal.slice(journal.length - restarts).filter((step) => step.kind === 'restart').length >= RESTART_LIMIT) {
		return {
			code: 'restart_loop',
			message: `the gateway or its thread ended ${RESTART_LIMIT} times in the same step of this run; it is not tried again`,
		}
	}
	const restart: JournalStep = { kind: 'restart' }
	await log.append([{ event_type: 'run.resumed', payload: { reason: 'restart' } }], restart)
	return 'goes on'
}

async function resume(
	ctx: Place,
	agent: AgentRecord,
	log: RunLog,
	journal: JournalStep[],
	question: Question,
	answer: string,
): Promise<void> {
	const asked: NewEvent[] = [
		{ event_type: 'question.answered', payload: { question_id: question.question_id, answer } },
		{ event_type: 'run.resumed', payload: { reason: 'answer', question_id: question.question_id } },
	]
	const call = pendingCall(journal, question.call_id)
	if (!call) return log.append(asked)
	const { event, step } = answeredCall(await ctx.toolbox.list(agent), call, answer)
	await log.append([...asked, event], step)
	journal.push(step)
}

/** Gives the run to a thread and answers what the thread asks. */
async function think(
	ctx: Place,
	run: RunRecord,
	agent: AgentRecord,
	log: RunLog,
	journal: JournalStep[],
	turn: Turn,
): Promise<RunOutcome> {
	const { signal } = turn
	let order: RunOrder
	try {
		order = await compose(ctx, run, agent, log, journal)
	} catch (error) {
		if (!(error instanceof Fault)) throw error
		return { status: 'failed', error: toWire(error), usage: usageOf(journal) }
	}
	if (signal.aborted) return { status: 'stopped' }
	const begun = new Set(journal.flatMap((step) => (step.kind === 'begun' ? [step.call_id] : [])))
	/** A call of a tool may outlast the run, such as one that its wall time cut off. */
	const over = new AbortController()
	const handle = ctx.pool.execute(order, {
		event(event) {
			if (event.event_type !== 'model.request')
				ctx.log.warn({ run_id: run.run_id, agent: run.agent, ...event.payload }, event.event_type)
			watched(log.append([event]))
		},
		stream: (content) => log.live({ event_type: 'model.stream', payload: { content } }),
		async model({ answer }) {
			const step: JournalStep = { kind: 'model', answer }
			await log.append(eventsOfAnswer(answer), step)
			journal.push(step)
			return null
		},
		async tool({ call }): Promise<ToolReply> {
			const site = {
				run_id: run.run_id,
				agent,
				conversation: run.conversation,
				signal: AbortSignal.any([signal, over.signal]),
				log,
				interrupted: begun.has(call.id),
			}
			// Asked for now, not when the run began: a reload may have brought other tools.
			const result = await callTool(await ctx.toolbox.list(agent), call, site, ctx.log)
			return result.status === 'waits'
				? { status: 'paused', question_id: await ask(ctx, run, log, call, result.question, turn) }
				: result
		},
	})
	const abort = (): void => void handle.abort(String(signal.reason))
	signal.addEventListener('abort', abort, { once: true })
	try {
		const outcome = await handle.outcome
		return signal.aborted ? { status: 'stopped' } : outcome
	} catch (error) {
		if (signal.aborted && isFault(error, 'thread_lost')) return { status: 'stopped' }
		throw error
	} finally {
		over.abort('the run is over')
		signal.removeEventListener('abort', abort)
	}
}

async function compose(
	ctx: Place,
	run: RunRecord,
	agent: AgentRecord,
	log: RunLog,
	journal: JournalStep[],
): Promise<RunOrder> {
	const { orders, instead_of } = ctx.use('models').choose(agent.config)
	if (instead_of !== undefined && journal.length === 0) {
		const message = `no provider is set up in gateway.yaml, so the offline one answers instead of "${instead_of}"`
		watched(
			log.append([
				{
					event_type: 'model.fallback',
					payload: { from: instead_of, to: orders[0]?.provider, code: 'provider_unknown', message },
				},
			]),
		)
	}
	const limits = { ...ctx.config.limits, ...agent.config.limits }
	const [history, tools] = await Promise.all([contextFor(ctx.store, run), ctx.toolbox.list(agent)])
	return {
		run_id: run.run_id,
		agent_id: run.agent,
		models: orders,
		system: agent.persona,
		history,
		prompt: run.prompt,
		tools: tools.map(specOf),
		journal: journal.filter((step): step is Step => step.kind === 'model' || step.kind === 'tool'),
		limits,
		remaining_ms: Math.max(0, limits.wall_time_s * 1000 - run.active_ms),
	}
}

/** Writes a question and that the run waits. May be repeated: its id follows from the call. */
async function ask(
	ctx: Place,
	run: RunRecord,
	log: RunLog,
	call: ToolCallRequest,
	text: QuestionText,
	turn: Turn,
): Promise<string> {
	const question_id = createHash('sha256').update(`${run.run_id}:${call.id}`).digest('hex').slice(0, 32)
	const question: Question = {
		...text,
		question_id,
		run_id: run.run_id,
		call_id: call.id,
		asked_at: now(),
		answer: null,
		answered_at: null,
	}
	try {
		await ctx.store.create(keys.question(run.agent_uid, question_id), question)
	} catch (error) {
		if (!isFault(error, 'conflict')) throw error // asked before a crash, and perhaps answered since
	}
	turn.settling()
	await log.append([
		{ event_type: 'question.asked', payload: { question_id, ...text } },
		{ event_type: 'run.paused', payload: { question_id } },
	])
	return question_id
}

/** The answer may already be there: then the run counts as started, and its next job is on its way. */
async function pause(ctx: Place, run: RunRecord, question_id: string, usage: Usage, active_ms: number): Promise<void> {
	await change(ctx.store, run.agent_uid, async () => {
		const entry = await ctx.store.get<RunRecord>(keys.run(run.agent_uid, run.run_id))
		const question = await ctx.store.get<Question>(keys.question(run.agent_uid, question_id))
		if (!entry || isEnded(entry.value.status) || !question) return { ops: null, result: null }
		const open = question.value.answer === null
		const text = {
			question: question.value.question,
			...(question.value.options && { options: question.value.options }),
		}
		const value: RunRecord = {
			...entry.value,
			usage,
			active_ms,
			status: open ? 'paused' : 'started',
			question: open ? { question_id, ...text } : null,
		}
		return { ops: [{ key: entry.key, value, expect: entry.rev }], result: null }
	})
}

type Final = Exclude<RunOutcome, { status: 'paused' }>

async function finish(ctx: Place, run: RunRecord, log: RunLog, outcome: Final, turn: Turn): Promise<RunRecord | null> {
	const at = now()
	turn.settling()
	switch (outcome.status) {
		case 'completed': {
			const { answer, usage } = outcome
			const completed: NewEvent = { event_type: 'run.completed', payload: { usage } }
			await writeEnd(log, [...eventsOfAnswer(answer), completed], { kind: 'model', answer })
			return endRun(ctx.store, run.agent_uid, run.run_id, { status: 'completed', answer: answer.content, usage }, at)
		}
		case 'failed': {
			const { error, usage } = outcome
			ctx.log.warn({ run_id: run.run_id, agent: run.agent, code: error.code }, `a run failed: ${error.message}`)
			await writeEnd(log, [{ event_type: 'run.failed', payload: { error: error.message, code: error.code, usage } }])
			return endRun(ctx.store, run.agent_uid, run.run_id, { status: 'failed', error, usage }, at)
		}
		case 'stopped': {
			await writeEnd(log, [{ event_type: 'run.stopped', payload: {} }])
			return endRun(
				ctx.store,
				run.agent_uid,
				run.run_id,
				{ status: 'stopped', usage: usageOf(log.journal.steps as JournalStep[]) },
				at,
			)
		}
	}
}

/** Nothing comes behind it, such as the result of a tool that did not hear of the stop. */
function writeEnd(log: RunLog, events: NewEvent[], step?: JournalStep): Promise<void> {
	const written = log.append(events, step)
	log.close()
	return written
}

/** For events that nobody waits for: where one cannot be written, the next append says so, and that one is awaited. */
function watched(appended: Promise<void>): void {
	appended.catch(() => {})
}
