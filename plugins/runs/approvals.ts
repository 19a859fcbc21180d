/** Approvals of tool calls: the question, its answer or expiry, and the permanent approvals. */
import { hash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Fault } from '../../core/errors.ts'
import { now } from '../../core/util/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { NewEvent, ToolCallRequest } from '../../core/protocol.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { change } from '../../core/store/change.ts'
import type { Job, Op, Store } from '../../core/store/ports.ts'
import { approvalDigest, approvalOptions, approvalText, readApproval } from './approval-text.ts'
import type { ApprovalAnswer } from './approval-text.ts'
import { answerEvents, askedBy, resumedEvent, settleOps } from './questions.ts'
import { wantedCall } from './call-policy.ts'
import type { WantedCall } from './call-policy.ts'
import type { Answer, AskedQuestion, Question, RunSettings, PermanentApproval } from './contract.ts'
import { enqueue } from './ending.ts'
import { keys } from './keys.ts'
import { jobOf } from './records.ts'
import { isEnded, isUnanswered } from './run-state.ts'
import type { JournalStep } from './journal-step.ts'
import { findTool } from '../../sandbox/wire-name.ts'
import { parseArguments } from './tool-specs.ts'
import type { Work } from './work.ts'

/** Permanent approvals of one agent. */
const PERMANENT_LIMIT = 1_000

/** The question for a call. Its id is derived from the call, so a repeated call asks the same question. */
export function approvalOf({ ctx, run }: Work, call: ToolCallRequest, wanted: WantedCall): Question {
	const { tool, name, digest, arguments: args } = wanted
	const asked = askedBy(run, call)
	return {
		question_id: hash('sha256', `${run.run_id}:${call.id}:approval`).slice(0, 32),
		kind: 'approval',
		tool,
		arguments: args,
		question: approvalText(tool, args),
		options: approvalOptions,
		expires_at: new Date(Date.parse(asked.asked_at) + ctx.config.approval_ttl_s * 1000).toISOString(),
		call: { name, digest },
		...asked,
	}
}

/**
 * Validates an answer, and returns what is written with it: fields of the question, and a permanent approval (`ops`). Throws
 * `invalid_request`, `invalid_arguments`, `conflict` if the question has expired, and `unavailable` if edited arguments cannot
 * be checked.
 */
export async function checkAnswer(
	{ store, toolbox, redactor }: Pick<Context, 'store' | 'toolbox' | 'redactor'>,
	agent: AgentRef,
	question: Question,
	answer: Answer,
): Promise<Pick<Question, 'given'> & { answer: string; ops: Op[] }> {
	if (question.kind !== 'approval') {
		if (answer.arguments !== undefined || answer.reason !== undefined)
			throw new Fault('invalid_request', 'this question is not an approval: send `answer` only')
		return { answer: answer.answer, ops: [] }
	}
	const read: ApprovalAnswer = readApproval(answer)
	if (isOverdue(question))
		throw new Fault('conflict', `question "${question.question_id}" has expired, which counts as refused`)
	const { tool, arguments: args, reason } = { ...question, ...read }
	const { name = '', digest = '' } = question.call ?? {}
	const checked = { answer: read.answer, ops: [] }
	switch (read.answer) {
		case 'refuse':
			return reason === undefined ? checked : { ...checked, given: { reason } }
		case 'edit': {
			const definition = findTool(await toolbox.list(agent), name)
			if (!definition)
				throw new Fault('unavailable', `the tool ${tool} is not available now, so its arguments cannot be checked`)
			const parsed = parseArguments(definition, JSON.stringify(args))
			await definition.check?.(parsed)
			const call = wantedCall(definition, parsed, redactor.of([{ uid: agent.uid }]))
			return { ...checked, given: { arguments: call.arguments } }
		}
		case 'approve_always': {
			const key = keys.approval(agent.uid, digest)
			if (await store.get(key)) return checked
			if ((await permanentApprovals(store, agent)).length >= PERMANENT_LIMIT)
				throw new Fault(
					'conflict',
					`${PERMANENT_LIMIT} calls of this agent are approved permanently, which is the limit; revoke some, or answer "approve"`,
				)
			const value = { tool: tool ?? name, arguments: args ?? {}, approved_at: now() }
			return { ...checked, ops: [{ key, value }] }
		}
		case 'approve':
			return checked
	}
}

/** Newest first. */
export async function permanentApprovals(store: Store, { uid }: AgentRef): Promise<PermanentApproval[]> {
	const stored = store.list<Omit<PermanentApproval, 'approval_id'>>(keys.approvals(uid))
	const found = await Array.fromAsync(stored, ({ key, value }) => ({ approval_id: key.at(-1) ?? '', ...value }))
	return found.toSorted((a, b) => (a.approved_at < b.approved_at ? 1 : -1))
}

export async function revoke(store: Store, agent: AgentRef, approval_id: string): Promise<void> {
	const key = keys.approval(agent.uid, approval_id)
	if (!/^[0-9a-f]{64}$/.test(approval_id) || !(await store.get(key)))
		throw new Fault('not_found', `agent "${agent.name}" has no approval "${approval_id.slice(0, 64)}"`, {
			hint: { route: 'GET /v1/agents/{name}/approvals', params: { name: agent.name }, does: 'lists them' },
		})
	await store.delete(key)
}

type Approved = Pick<Extract<JournalStep, { kind: 'approved' }>, 'digest' | 'arguments' | 'edited'>

/** Whether the call of a closed or answered approval is made (`approved`) or fails (`refused`). Null while it is open. */
export function outcomeOf(question: Question): { events: NewEvent[]; approved?: Approved; refused?: Fault } | null {
	const { question_id, kind, answer, given, closed, call, arguments: args = {} } = question
	if (kind !== 'approval') return null
	if (answer === null) {
		if (closed !== 'expired') return null
		const refused = new Fault('approval_refused', 'nobody approved this call in time, so it was not made')
		return { events: [resumedEvent('expired', question_id)], refused }
	}
	const events = answerEvents(question)
	if (answer === 'refuse') {
		const why = given?.reason === undefined ? 'without giving a reason' : `with this reason: ${given.reason}`
		return { events, refused: new Fault('approval_refused', `a person refused this call, ${why}`) }
	}
	const { name = '', digest = '' } = call ?? {}
	const edited = given?.arguments
	if (!edited) return { events, approved: { digest, arguments: JSON.stringify(args) } }
	const changed = { digest: approvalDigest(name, edited), arguments: JSON.stringify(edited), edited: true as const }
	return { events, approved: changed }
}

/** Open approvals that this process watches, by the question's id. `at`: when they expire. */
const watched = new Map<string, { uid: string; at: number }>()

export function watchExpiry(uid: string, { question_id, expires_at }: AskedQuestion): void {
	if (expires_at !== undefined) watched.set(question_id, { uid, at: Date.parse(expires_at) })
}

export function unwatchExpiry(question_id: string): void {
	watched.delete(question_id)
}

export function isOverdue({ expires_at }: Pick<Question, 'expires_at'>, at = Date.now()): boolean {
	return expires_at !== undefined && Date.parse(expires_at) <= at
}

const CHECK_MS = 1_000
/** An approval that is not in the store was deleted with its agent or its conversation. */
const FORGET_MS = 60_000

/** Expires the watched approvals that are due. */
export function expireApprovals(ctx: Context<RunSettings>): void {
	ctx.every(CHECK_MS, async () => {
		const at = Date.now()
		const due = [...watched].filter(([, approval]) => approval.at <= at)
		for (const [question_id, { uid }] of due) {
			// It may belong to another gateway in this process.
			const isHere = (await ctx.store.get(keys.question(uid, question_id))) !== undefined
			if (isHere) await expireApproval(ctx, uid, question_id)
			if (isHere || at - (watched.get(question_id)?.at ?? 0) > FORGET_MS) watched.delete(question_id)
			await nextTurn()
		}
	})
}

/** Closes an approval that is still open; its run continues without the call. */
export async function expireApproval(ctx: Context<RunSettings>, uid: string, question_id: string): Promise<void> {
	const job = await change<Job | null>(ctx.store, agentScope(uid), async () => {
		const question = await ctx.store.get<Question>(keys.question(uid, question_id))
		if (!question || !isUnanswered(question.value)) return { result: null }
		const { ops, run } = await settleOps(ctx.store, uid, question, { closed: 'expired' })
		return { ops, result: run && !isEnded(run.status) ? jobOf(run, question_id) : null }
	})
	if (job) enqueue(ctx, job)
}
