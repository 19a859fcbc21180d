/** Periodic maintenance: expires questions, and deletes old runs, requests and idempotency keys. */
import { now, timeOfId } from '../../core/util/ids.ts'
import type { Context } from '../../core/plugin.ts'
import { expireApproval, expireApprovals, isOverdue } from './approvals.ts'
import { closeQuestion } from './questions.ts'
import type { Question, RunRecord, RunSettings } from './contract.ts'
import { openLog } from './ending.ts'
import { finish } from './finish.ts'
import { forgetRun } from './forget.ts'
import { keys } from './keys.ts'
import type { IndexEntry } from './keys.ts'
import { forgetEndedNotes } from './notes.ts'
import { hasOpenChild, readRun } from './records.ts'
import { isEnded, isUnanswered } from './run-state.ts'
import { forgetEndedSummaries } from './summary-record.ts'
import { pruneRequests } from './requests.ts'
import { IDEMPOTENCY_MS } from './start.ts'
import type { IdempotencyRecord } from './start.ts'
import { withRun } from './run-lock.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

export function maintain(ctx: Context<RunSettings>): void {
	ctx.every(HOUR_MS, () => tidy(ctx, Date.now()))
	expireApprovals(ctx)
}

/** `at`: the current time in milliseconds since 1970. */
export async function tidy(ctx: Context<RunSettings>, at: number): Promise<void> {
	const { config, store, signal } = ctx
	await forgetOldRuns(ctx, at - config.retention_days * DAY_MS)
	for await (const { uid, name } of ctx.use('agents').list()) {
		if (signal.aborted) return
		await forgetEndedNotes(store, { uid, name })
		await forgetEndedSummaries(store, uid)
		await pruneRequests(store, uid, at - config.keep_requests * DAY_MS)
		for await (const { key, value } of store.list<IdempotencyRecord>(keys.idempotencies(uid))) {
			if (Date.parse(value.at) < at - IDEMPOTENCY_MS) await store.delete(key)
		}
		for await (const { key, value } of store.list<Question>(keys.questions(uid))) {
			const asked = Date.parse(value.asked_at)
			const isOpen = isUnanswered(value)
			if (isOpen && value.kind === 'approval') {
				if (isOverdue(value, at)) await expireApproval(ctx, uid, value.question_id)
			} else if (isOpen && asked < at - config.question_ttl_days * DAY_MS) await expire(ctx, uid, value)
			if (asked < at - config.retention_days * DAY_MS && !(await store.get(keys.run(uid, value.run_id))))
				await store.delete(key)
		}
	}
}

/** Ids sort by time, so the first recent one ends the search. An unfinished run is kept at any age. */
async function forgetOldRuns(ctx: Context<RunSettings>, before: number): Promise<void> {
	const { store, signal } = ctx
	for await (const { key, value } of store.list<IndexEntry>(keys.indexes())) {
		const run_id = key.at(-1) ?? ''
		if (signal.aborted || (timeOfId(run_id) ?? 0) >= before) return
		const entry = await store.get<RunRecord>(keys.run(value.uid, run_id))
		if (entry && (!isEnded(entry.value.status) || Date.parse(entry.value.ended_at ?? now()) >= before)) continue
		if (entry && (await hasOpenChild(store, entry.value))) continue // the child's result needs it
		if (entry) await forgetRun(ctx, entry.value)
		else await store.delete(key)
	}
}

async function expire(ctx: Context<RunSettings>, uid: string, question: Question): Promise<void> {
	// The call that asked is still in flight, and watches the question.
	if (question.live) return void (await closeQuestion(ctx.store, uid, question.question_id, 'expired'))
	await withRun(question.run_id, async () => {
		const run = await readRun(ctx.store, uid, question.run_id)
		const log = run?.status === 'paused' ? await openLog(ctx, run) : null
		if (!run || !log) return
		const message = `nobody answered the question within ${ctx.config.question_ttl_days} days (runs.question_ttl_days)`
		const error = { code: 'question_expired' as const, message }
		await finish({ ctx, run, log }, { status: 'failed', error, usage: run.usage })
	})
}
