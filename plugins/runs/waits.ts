/**
 * Paused runs: each waits until a question is answered or another run has ended. The journal states what a run waits for. The
 * record shows the same to readers, and is updated by the answer or by the end of the other run.
 */
import { hash } from 'node:crypto'
import { Fault, isFault } from '../../core/errors.ts'
import type { Wait } from '../../core/plugin.ts'
import { usageOf } from '../../core/protocol.ts'
import type { NewEvent, ToolCallRequest, ToolReply } from '../../core/protocol.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import type { Op } from '../../core/store/ports.ts'
import type { WaitStep } from './journal-step.ts'
import type { Journal } from './run-log.ts'
import { approvalOf, outcomeOf, watchExpiry } from './approvals.ts'
import type { WantedCall } from './call-policy.ts'
import { answeredCall } from './tool-call.ts'
import { change, changeRecord } from '../../core/store/change.ts'
import type { Decision } from '../../core/store/change.ts'
import { answerEvents, askedBy, textOf } from './questions.ts'
import type { Question, RunRecord } from './contract.ts'
import { eventsOfEnded, pendingCall, resultOfRun } from './journal.ts'
import { keys } from './keys.ts'
import { questionsIn, waitsIn } from './open-waits.ts'
import { appendWith, readRun } from './records.ts'
import { isEnded, isUnanswered } from './run-state.ts'
import type { Work } from './work.ts'

/** Limit of runs that wait for the end of one run. */
const WAITING_LIMIT = 32

/** Pauses the run. Returns the call's result instead if there is nothing to wait for. */
export function beginWait(work: Work, call: ToolCallRequest, wait: Wait): Promise<ToolReply> {
	if ('run_id' in wait) return waitForRun(work, call, wait.run_id)
	// Derived from the call, so that a repeated call asks the same question.
	const question_id = hash('sha256', `${work.run.run_id}:${call.id}`).slice(0, 32)
	return pauseFor(work, call, { ...wait, question_id, ...askedBy(work.run, call) })
}

/** Writes the results of the calls whose wait is over. Returns the waits that remain. */
export async function resume(work: Work, waits: readonly WaitStep[]): Promise<WaitStep[]> {
	const left: WaitStep[] = []
	for (const wait of waits) if (!(await resumeOne(work, wait))) left.push(wait)
	return left
}

async function resumeOne(work: Work, wait: WaitStep): Promise<boolean> {
	const { store } = work.ctx
	const { agent_uid } = work.run
	if ('run_id' in wait.for) {
		const { run_id } = wait.for
		const awaited = await readRun(store, agent_uid, run_id)
		if (awaited && !isEnded(awaited.status)) return false
		const resumed = { event_type: 'run.resumed', payload: { reason: 'subagent', run_id } }
		const result = awaited ? resultOfRun(awaited) : new Fault('not_found', `there is no run "${run_id}" any more`)
		await giveResult(work, wait.call_id, [resumed, ...(awaited ? eventsOfEnded(awaited) : [])], result)
		return true
	}
	const { question_id } = wait.for
	const question = await store.get<Question>(keys.question(agent_uid, question_id))
	if (question?.value.kind === 'approval') {
		const outcome = outcomeOf(question.value)
		if (!outcome) return false
		const { events, approved, refused } = outcome
		if (approved) await work.log.append(events, { kind: 'approved', call_id: wait.call_id, ...approved })
		else await giveResult(work, wait.call_id, events, refused)
		return true
	}
	const answer = question?.value.answer
	if (!question || typeof answer !== 'string') return false
	await giveResult(work, wait.call_id, answerEvents(question.value), { answer })
	return true
}

/** Pauses the run again: some of its waits remain. */
export function pauseAgain(work: Work, left: readonly WaitStep[]): Promise<null> {
	const [question_id] = questionsIn(left)
	const [waits_for] = left.flatMap((wait) => ('run_id' in wait.for ? [wait.for.run_id] : []))
	return pause(work, {
		...(question_id !== undefined && { question_id }),
		...(waits_for !== undefined && { waits_for }),
	})
}

/** Marks the record as paused: a crash of version 0.1.0 may have left it older than the journal. */
export function showPaused(work: Work): Promise<null> {
	return change(work.ctx.store, agentScope(work.run.agent_uid), () => pauseOps(work))
}

/** Pauses the run in its log and its record. `step`: of a call that begins to wait, after the question `asked`. */
function pause(
	work: Work,
	payload: { question_id?: string; waits_for?: string },
	step?: WaitStep,
	asked?: Question,
): Promise<null> {
	const events: NewEvent[] = asked ? [{ event_type: 'question.asked', payload: { ...textOf(asked) } }] : []
	events.push({ event_type: 'run.paused', payload })
	return appendWith(work.log, work.run.agent_uid, { events, step }, () => pauseOps(work, step, asked))
}

/**
 * The writes that pause a run: its record, and the question `asked`, unless that was stored before a crash.
 * If it is already answered, or the awaited run has ended, the run counts as started, and its next job exists.
 */
async function pauseOps(
	{ ctx: { store }, run, log, active_ms }: Work,
	step?: WaitStep,
	asked?: Question,
): Promise<Decision<null>> {
	const earlier = waitsIn(log.journal).filter(({ call_id }) => call_id !== step?.call_id)
	const { agent_uid, run_id } = run
	const entry = await store.get<RunRecord>(keys.run(agent_uid, run_id))
	if (!entry || isEnded(entry.value.status)) return { result: null }
	const ops: Op[] = []
	let question: RunRecord['question'] = null
	const runs: string[] = []
	for (const wait of step ? [...earlier, step] : earlier) {
		if ('run_id' in wait.for) {
			const awaited = await store.get<RunRecord>(keys.run(agent_uid, wait.for.run_id))
			if (awaited && !isEnded(awaited.value.status)) runs.push(wait.for.run_id)
			continue
		}
		const key = keys.question(agent_uid, wait.for.question_id)
		const stored = await store.get<Question>(key)
		if (!stored && asked) ops.push({ key, value: asked, expect: null })
		const open = stored?.value ?? asked
		if (open && isUnanswered(open)) question = textOf(open)
	}
	const { waits_for: _earlier, waits_for_all: _others, ...before } = entry.value
	const value: RunRecord = {
		...before,
		usage: usageOf(log.journal.steps),
		active_ms: active_ms(),
		status: question || runs.length > 0 ? 'paused' : 'started',
		question,
		...(runs[0] !== undefined && { waits_for: runs[0] }),
		...(runs.length > 1 && { waits_for_all: runs }),
	}
	ops.push({ key: entry.key, value, expect: entry.rev })
	return { ops, result: null }
}

async function pauseFor(work: Work, call: ToolCallRequest, question: Question): Promise<ToolReply> {
	const { question_id } = question
	// Otherwise the question was asked before a crash.
	const isNew = waitsIn(work.log.journal).every(({ call_id }) => call_id !== call.id)
	if (isNew) await pause(work, { question_id }, { kind: 'waits', call_id: call.id, for: { question_id } }, question)
	else await pause(work, { question_id })
	return { status: 'paused', waits_for: question_id }
}

/**
 * Pauses the run until a person has approved the call. A run asks for one approval at a time: while one is open, another call
 * does not ask until the run continues. Calls of the same answer that need no approval are made meanwhile.
 */
export async function askApproval(work: Work, call: ToolCallRequest, wanted: WantedCall): Promise<ToolReply> {
	const question = approvalOf(work, call, wanted)
	const { question_id } = question
	const waits_for = (work.waits_for ??= questionsIn(waitsIn(work.log.journal))[0] ?? question_id)
	if (waits_for !== question_id) return { status: 'paused', waits_for }
	watchExpiry(work.run.agent_uid, question)
	return pauseFor(work, call, question)
}

/** May be repeated: a run that already waits is not added again. */
async function waitForRun(work: Work, call: ToolCallRequest, run_id: string): Promise<ToolReply> {
	let result: unknown
	let reports: NewEvent[] = []
	try {
		const ended = await joinWaiting(work, run_id)
		if (!ended) {
			await pause(work, { waits_for: run_id }, { kind: 'waits', call_id: call.id, for: { run_id } })
			return { status: 'paused', waits_for: run_id }
		}
		reports = eventsOfEnded(ended)
		result = resultOfRun(ended)
	} catch (error) {
		if (work.log.isClosed() || !isFault(error, 'not_found', 'conflict')) throw error
		result = error
	}
	const { ok, content } = await giveResult(work, call.id, reports, result)
	return { status: 'done', ok, content }
}

/** Registers the run to continue when the other run ends. Returns the other run if it has already ended. */
function joinWaiting({ ctx: { store }, run }: Work, run_id: string): Promise<RunRecord | null> {
	return changeRecord<RunRecord, RunRecord | null>(store, keys.run(run.agent_uid, run_id), (awaited) => {
		if (!awaited) throw new Fault('not_found', `agent "${run.agent}" has no run "${run_id}" to wait for`)
		const { conversation, status, waited_by = [] } = awaited
		if (isEnded(status)) return { result: awaited }
		if (conversation === run.conversation)
			throw new Fault('conflict', `run ${run_id} is in the same conversation, so both runs would wait for each other`)
		if (waited_by.includes(run.run_id)) return { result: null }
		if (waited_by.length >= WAITING_LIMIT)
			throw new Fault('conflict', `${WAITING_LIMIT} runs already wait for run ${run_id}, which is the limit`)
		return { next: { ...awaited, waited_by: [...waited_by, run.run_id] }, result: null }
	})
}

/** Appends the events `reports` and the result of the waiting call in one write. */
async function giveResult(
	{ ctx, run: { run_id }, agent, limits: { result_characters }, log }: Work,
	call_id: string,
	reports: NewEvent[],
	result: unknown,
): Promise<{ ok: boolean; content: string }> {
	const call = pendingCall(log.journal, call_id)
	if (!call) throw new Error(`the journal has no call ${call_id}`)
	const site = { log, agent, run_id, result_characters }
	const { event, step, change: results } = answeredCall(await ctx.toolbox.list(agent), call, result, site)
	await log.append([...reports, event], step, results)
	return step
}

/** Whether a call before the last waiting one is neither finished nor waiting, which a crash can cause. */
export function hasUnfinishedBefore({ steps }: Journal, waits: readonly WaitStep[]): boolean {
	const waiting = new Set(waits.map((wait) => wait.call_id))
	const latest = steps.findLastIndex((step) => step.kind === 'model')
	const answer = steps[latest]
	if (answer?.kind !== 'model') return false
	const finished = new Set(steps.slice(latest).flatMap((step) => (step.kind === 'tool' ? [step.call_id] : [])))
	const calls = answer.answer.tool_calls.map(({ id }) => id)
	const last = calls.findLastIndex((id) => waiting.has(id))
	return calls.slice(0, last).some((id) => !waiting.has(id) && !finished.has(id))
}

/** Whether a call was approved but not made yet. */
export function hasApproved({ steps }: Journal): boolean {
	const made = new Set(steps.flatMap((step) => (step.kind === 'tool' ? [step.call_id] : [])))
	return steps.some((step) => step.kind === 'approved' && !made.has(step.call_id))
}
