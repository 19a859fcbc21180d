/** Questions of runs that are open, and the answer to one. */
import { Fault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { change } from '../../core/store/change.ts'
import type { Entry, Job, Op, Store } from '../../core/store/ports.ts'
import { causeNow } from '../../core/util/context.ts'
import { now } from '../../core/util/ids.ts'
import { checkAnswer, unwatchExpiry } from './approvals.ts'
import type { Answer, Question, RunSettings } from './contract.ts'
import { enqueue } from './ending.ts'
import { keys } from './keys.ts'
import { jobOf, readRun } from './records.ts'
import { settleOps } from './questions.ts'
import { isEnded, isUnanswered } from './run-state.ts'

/** Parts of messages: why a question was closed without an answer. */
const closings = {
	expired: 'not answered in time (runs.question_ttl_days; an approval: runs.approval_ttl_s)',
	withdrawn: 'withdrawn with the call that asked it; if the call is repeated, it asks again',
}

/** The open questions of an agent, the oldest first. */
export async function openQuestions(store: Store, { uid }: AgentRef): Promise<Question[]> {
	const open: Question[] = []
	for await (const { value: question } of store.list<Question>(keys.questions(uid))) {
		if (!isUnanswered(question)) continue
		const run = await readRun(store, uid, question.run_id)
		if (run && !isEnded(run.status)) open.push(question)
	}
	return open.toSorted((a, b) => (a.asked_at < b.asked_at ? -1 : 1))
}

/** As `Runs.answer`. */
export async function answerQuestion(
	ctx: Context<RunSettings>,
	agent: AgentRef,
	question_id: string,
	given: string | Answer,
	also: Op[] = [],
): Promise<void> {
	const { store } = ctx
	const asked = (await store.get<Question>(keys.question(agent.uid, question_id)))?.value
	const told = typeof given === 'string' ? { answer: given } : given
	// The content of a question never changes. Whether it is still open is checked in the transaction below.
	const actor = causeNow()?.actor
	const taken =
		asked && isUnanswered(asked) ? await checkAnswer(ctx, agent, asked, told) : { answer: told.answer, ops: [] }
	const job = await change<Job | null>(store, agentScope(agent.uid), async () => {
		const question = await readOpenQuestion(store, agent, question_id)
		const { ops, run } = await settleOps(store, agent.uid, question, {
			answer: taken.answer,
			answered_at: now(),
			...(actor && { actor }),
			...(taken.given && { given: taken.given }),
		})
		if (!run || isEnded(run.status))
			throw new Fault(
				'conflict',
				`the run that asked question "${question_id}" has ended (${run?.status ?? 'removed'}); nothing waits for the answer`,
			)
		// The call that asked a live question watches it, so no job is needed.
		return { ops: [...ops, ...taken.ops, ...also], result: question.value.live ? null : jobOf(run, question_id) }
	})
	unwatchExpiry(question_id)
	if (job) enqueue(ctx, job)
}

/** The record of a question. Throws `not_found`, `already_answered`, and `conflict` if it was closed without an answer. */
async function readOpenQuestion(store: Store, { name, uid }: AgentRef, question_id: string): Promise<Entry<Question>> {
	const question = await store.get<Question>(keys.question(uid, question_id))
	if (!question)
		throw new Fault('not_found', `agent "${name}" has no question "${question_id}"`, {
			hint: { route: 'GET /v1/agents/{name}/questions', params: { name }, does: 'lists the open ones' },
		})
	const { answer, answered_at, closed } = question.value
	if (answer !== null) throw new Fault('already_answered', `question "${question_id}" was answered at ${answered_at}`)
	if (closed) throw new Fault('conflict', `question "${question_id}" was ${closings[closed]}`)
	return question
}
