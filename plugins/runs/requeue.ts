/** Requeues unfinished runs when the gateway starts. Paused runs stay paused, and orphans are stopped. */
import { isFault, messageOf } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { watchExpiry } from './approvals.ts'
import { closeQuestion, resumedEvent } from './questions.ts'
import { isFreshRun } from './begin.ts'
import type { Question, RunRecord, RunSettings } from './contract.ts'
import { isOrphan, openLog, stop } from './ending.ts'
import { keys } from './keys.ts'
import type { IndexEntry, ConversationQueue } from './keys.ts'
import { jobOf } from './records.ts'
import { withFreeRun } from './run-lock.ts'

const RETRY_MS = 1_000

/** On a full disk the gateway still starts, so that its data can be read and deleted. The runs continue once there is room. */
export async function requeueWithRoom(ctx: Context<RunSettings>, isFirst = true): Promise<void> {
	try {
		await requeue(ctx)
	} catch (error) {
		if (!isFault(error, 'storage_full')) throw error
		if (isFirst) ctx.log.warn(`interrupted runs wait for room on the disk: ${messageOf(error)}`)
		ctx.after(RETRY_MS, () => requeueWithRoom(ctx, false))
	}
}

/**
 * Creates a job for every run that is first in its conversation queue, since a crash may have lost its job. Existing jobs stay
 * as they are. After a reload, the job of a run in progress waits for the run's holder, and continues the run if the holder did
 * not finish it. Paused runs need no job: the answer to their question, or the end of the awaited run, marks them as started in
 * the same write.
 */
async function requeue(ctx: Context<RunSettings>): Promise<void> {
	const { store, queue } = ctx
	const counts = { interrupted: 0, paused: 0 }
	for await (const agent of ctx.use('agents').list()) {
		for await (const { value } of store.list<ConversationQueue>(keys.queues(agent.uid))) {
			const active = value.runs[0]
			const entry = active === undefined ? undefined : await store.get<RunRecord>(keys.run(agent.uid, active))
			if (!entry) continue
			const run = entry.value
			if (await isOrphan(store, run)) {
				await stop(ctx, agent.uid, run.run_id)
			} else if (run.status === 'paused' && !(await withdrawLost(ctx, agent, run))) {
				counts.paused++
				if (run.question) watchExpiry(agent.uid, run.question)
			} else if (!isFreshRun(run.run_id)) {
				counts.interrupted++
				await store.put(keys.index(run.run_id), { agent: agent.name, uid: agent.uid } satisfies IndexEntry)
				await queue.enqueue(jobOf(run))
			}
		}
	}
	if (counts.interrupted + counts.paused > 0)
		ctx.log.info(counts, 'unfinished runs were found: interrupted runs continue now, paused runs keep waiting')
}

/**
 * Withdraws a question that a tool asked during its call: the call was lost with its process. False for other questions, and
 * after a reload, when this process still executes the call.
 */
async function withdrawLost(ctx: Context<RunSettings>, { uid }: AgentRef, run: RunRecord): Promise<boolean> {
	if (!run.question) return false
	const { question_id } = run.question
	const asked = await ctx.store.get<Question>(keys.question(uid, question_id))
	if (!asked?.value.live) return false
	return withFreeRun(run.run_id, async () => {
		const closed = await closeQuestion(ctx.store, uid, question_id, 'withdrawn')
		const log = closed && (await openLog(ctx, run))
		if (!log) return
		// Otherwise followers would still show the question if the run continues with the answer to an earlier approval.
		await log.append([resumedEvent(closed, question_id)]).finally(log.close)
	})
}
