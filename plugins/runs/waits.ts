/**
 * Runs that are paused: until a question is answered, or until another run has ended. What a run waits for stands in its
 * journal; its record says the same to readers, and is what the answer, or that end, changes.
 */
import { createHash } from 'node:crypto'
import { Fault, isFault } from '../../core/errors.ts'
import { now } from '../../core/ids.ts'
import type { Context, QuestionText, Wait } from '../../core/plugin.ts'
import { usageOf } from '../../core/protocol.ts'
import type { NewEvent, ToolCallRequest, ToolReply } from '../../core/protocol.ts'
import type { JournalStep, RunLog, WaitStep } from '../../core/run-log.ts'
import { answeredCall } from '../../core/toolbox.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type { Question, RunRecord } from './contract.ts'
import { eventOfChild, pendingCall, resultOfRun } from './journal.ts'
import { keys } from './keys.ts'
import { change, isEnded } from './records.ts'
import type { Turn } from './turns.ts'

/** A run that somebody works on. */
export interface Work {
	ctx: Pick<Context, 'store' | 'toolbox'>
	run: RunRecord
	agent: AgentRecord
	log: RunLog
	/** Grows with what is appended to the log. */
	journal: JournalStep[]
	turn: Turn
}

/** Runs that may wait for the end of one run. */
const WAITING_LIMIT = 32

/** Writes that the run waits. Answers with the call's result instead, where there is nothing to wait for. */
export function beginWait(work: Work, call: ToolCallRequest, wait: Wait): Promise<ToolReply> {
	return 'run_id' in wait ? waitForRun(work, call, wait.run_id) : ask(work, call, wait)
}

/** What a run waits for, where it is paused by its journal. */
export function waitIn(journal: JournalStep[]): WaitStep | undefined {
	const last = journal.at(-1)
	return last?.kind === 'waits' ? last : undefined
}

/** Takes a paused run up again. False where what it waits for has not come yet. */
export async function resume(work: Work, wait: WaitStep): Promise<boolean> {
	const { store } = work.ctx
	const { agent_uid } = work.run
	if ('run_id' in wait.for) {
		const { run_id } = wait.for
		const awaited = (await store.get<RunRecord>(keys.run(agent_uid, run_id)))?.value
		if (awaited && !isEnded(awaited.status)) return false
		const resumed = { event_type: 'run.resumed', payload: { reason: 'subagent', run_id } }
		const result = awaited ? resultOfRun(awaited) : new Fault('not_found', `there is no run "${run_id}" any more`)
		await goOn(work, wait.call_id, [resumed, ...(awaited ? eventOfChild(awaited) : [])], result)
		return true
	}
	const { question_id } = wait.for
	const question = await store.get<Question>(keys.question(agent_uid, question_id))
	const answer = question?.value.answer
	if (answer === undefined || answer === null) return false
	const answered: NewEvent[] = [
		{ event_type: 'question.answered', payload: { question_id, answer } },
		{ event_type: 'run.resumed', payload: { reason: 'answer', question_id } },
	]
	await goOn(work, wait.call_id, answered, { answer })
	return true
}

/** Makes the record follow. What the run waits for may have come meanwhile: then it counts as started, and its next job is on its way. */
export async function pause({ ctx: { store }, run, journal }: Work, wait: WaitStep, active_ms: number): Promise<void> {
	const { agent_uid, run_id } = run
	await change(store, agent_uid, async () => {
		const entry = await store.get<RunRecord>(keys.run(agent_uid, run_id))
		if (!entry || isEnded(entry.value.status)) return { ops: null, result: null }
		const { waits_for: _earlier, ...before } = entry.value
		const shown = await openWait(store, agent_uid, wait)
		const status = shown ? 'paused' : 'started'
		const value: RunRecord = { ...before, usage: usageOf(journal), active_ms, status, question: null, ...shown }
		return { ops: [{ key: entry.key, value, expect: entry.rev }], result: null }
	})
}

/** How a record shows what its run waits for; null where that has come. */
async function openWait(
	store: Context['store'],
	uid: string,
	wait: WaitStep,
): Promise<Pick<RunRecord, 'question' | 'waits_for'> | null> {
	if ('run_id' in wait.for) {
		const awaited = await store.get<RunRecord>(keys.run(uid, wait.for.run_id))
		return awaited && !isEnded(awaited.value.status) ? { question: null, waits_for: wait.for.run_id } : null
	}
	const entry = await store.get<Question>(keys.question(uid, wait.for.question_id))
	if (!entry || entry.value.answer !== null) return null
	const { question_id, question, options } = entry.value
	return { question: { question_id, question, ...(options && { options }) } }
}

/** May be repeated: the question's id follows from the call. */
async function ask(work: Work, call: ToolCallRequest, text: QuestionText): Promise<ToolReply> {
	const { store } = work.ctx
	const { run_id, agent_uid } = work.run
	const question_id = createHash('sha256').update(`${run_id}:${call.id}`).digest('hex').slice(0, 32)
	const question: Question = {
		...text,
		question_id,
		run_id,
		call_id: call.id,
		asked_at: now(),
		answer: null,
		answered_at: null,
	}
	try {
		await store.create(keys.question(agent_uid, question_id), question)
	} catch (error) {
		if (!isFault(error, 'conflict')) throw error // asked before a crash, and perhaps answered since
	}
	await writePaused(
		work,
		{ kind: 'waits', call_id: call.id, for: { question_id } },
		[{ event_type: 'question.asked', payload: { question_id, ...text } }],
		{ question_id },
	)
	return { status: 'paused', waits_for: question_id }
}

/** May be repeated too: whoever waits already is not added again. */
async function waitForRun(work: Work, call: ToolCallRequest, run_id: string): Promise<ToolReply> {
	let result: unknown
	let told: NewEvent[] = []
	try {
		const ended = await joinWaiting(work, run_id)
		if (!ended) {
			const wait: WaitStep = { kind: 'waits', call_id: call.id, for: { run_id } }
			await writePaused(work, wait, [], { waits_for: run_id })
			return { status: 'paused', waits_for: run_id }
		}
		told = eventOfChild(ended)
		result = resultOfRun(ended)
	} catch (error) {
		if (work.log.closed || !isFault(error, 'not_found', 'conflict')) throw error
		result = error
	}
	const { ok, content } = await goOn(work, call.id, told, result)
	return { status: 'done', ok, content }
}

/** Adds the run to those that the end of the other one wakes; answers with that one where it has ended already. */
function joinWaiting({ ctx: { store }, run }: Work, run_id: string): Promise<RunRecord | null> {
	return change<RunRecord | null>(store, run.agent_uid, async () => {
		const entry = await store.get<RunRecord>(keys.run(run.agent_uid, run_id))
		if (!entry) throw new Fault('not_found', `agent "${run.agent}" has no run "${run_id}" to wait for`)
		const { conversation, status, waited_by = [] } = entry.value
		if (isEnded(status)) return { ops: null, result: entry.value }
		if (conversation === run.conversation)
			throw new Fault('conflict', `run ${run_id} is in the same conversation, so it would wait for this one in turn`)
		if (waited_by.includes(run.run_id)) return { ops: null, result: null }
		if (waited_by.length >= WAITING_LIMIT)
			throw new Fault('conflict', `${WAITING_LIMIT} runs wait for run ${run_id} already`)
		const value: RunRecord = { ...entry.value, waited_by: [...waited_by, run.run_id] }
		return { ops: [{ key: entry.key, value, expect: entry.rev }], result: null }
	})
}

async function writePaused(
	{ log, journal, turn }: Work,
	step: WaitStep,
	before: NewEvent[],
	payload: Record<string, unknown>,
): Promise<void> {
	turn.settling()
	await log.append([...before, { event_type: 'run.paused', payload }], step)
	journal.push(step)
}

/** Gives the waiting call its result, behind what there is to tell, as one durable whole. */
async function goOn(
	{ ctx, agent, log, journal }: Work,
	call_id: string,
	told: NewEvent[],
	result: unknown,
): Promise<{ ok: boolean; content: string }> {
	const call = pendingCall(journal, call_id)
	if (!call) throw new Error(`the journal has no call ${call_id}`)
	const { event, step } = answeredCall(await ctx.toolbox.list(agent), call, result, log)
	await log.append([...told, event], step)
	journal.push(step)
	return step
}
