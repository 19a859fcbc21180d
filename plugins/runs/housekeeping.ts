/** What time does to runs: questions expire, ended runs and used keys are forgotten. */
import { now } from '../../core/ids.ts'
import type { Context } from '../../core/plugin.ts'
import type { Question, RunRecord, RunSettings } from './contract.ts'
import { keys } from './keys.ts'
import type { IndexEntry } from './keys.ts'
import { endRun, isEnded, jobOf } from './records.ts'
import { IDEMPOTENCY_MS } from './start.ts'
import type { IdempotencyRecord } from './start.ts'
import { withRun } from './turns.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

export function keepHouse(ctx: Context<RunSettings>): void {
	const work = (): void =>
		void tidy(ctx, Date.now()).catch((error: unknown) =>
			ctx.log.error({ err: error }, 'old runs could not be tidied away'),
		)
	const timer = setInterval(work, HOUR_MS).unref()
	ctx.defer(() => clearInterval(timer), 'housekeeping timer')
}

/** `at` in milliseconds since 1970: what counts as now. */
export async function tidy(ctx: Context<RunSettings>, at: number): Promise<void> {
	const { config, store, signal } = ctx
	await forgetRuns(ctx, at - config.retention_days * DAY_MS)
	for await (const { uid } of ctx.use('agents').list()) {
		if (signal.aborted) return
		for await (const { key, value } of store.list<IdempotencyRecord>(keys.idempotencies(uid))) {
			if (Date.parse(value.at) < at - IDEMPOTENCY_MS) await store.delete(key)
		}
		for await (const { key, value } of store.list<Question>(keys.questions(uid))) {
			const asked = Date.parse(value.asked_at)
			if (value.answer === null && asked < at - config.question_ttl_days * DAY_MS) await expire(ctx, uid, value)
			if (asked < at - config.retention_days * DAY_MS && !(await store.get(keys.run(uid, value.run_id))))
				await store.delete(key)
		}
	}
}

/** Ids sort by time, so the first that is young enough ends the search; a run that still goes on is kept whatever its age. */
async function forgetRuns(ctx: Context<RunSettings>, before: number): Promise<void> {
	const { store, signal } = ctx
	for await (const { key, value } of store.list<IndexEntry>(keys.indexes())) {
		const run_id = key.at(-1) ?? ''
		if (signal.aborted || millisecondsOf(run_id) >= before) return
		const entry = await store.get<RunRecord>(keys.run(value.uid, run_id))
		if (entry && (!isEnded(entry.value.status) || Date.parse(entry.value.ended_at ?? now()) >= before)) continue
		if (entry) {
			await store.delete(keys.turn(value.uid, entry.value.conversation, run_id))
			await store.delete(entry.key)
		}
		await store.delete(key)
	}
}

/** The time in a UUIDv7. */
function millisecondsOf(id: string): number {
	return Number.parseInt(id.replace('-', '').slice(0, 12), 16)
}

async function expire(ctx: Context<RunSettings>, uid: string, question: Question): Promise<void> {
	await withRun(question.run_id, async (turn) => {
		const entry = await ctx.store.get<RunRecord>(keys.run(uid, question.run_id))
		if (entry?.value.status !== 'paused') return
		const error = {
			code: 'question_expired' as const,
			message: `nobody answered the question within ${ctx.config.question_ttl_days} days (runs.question_ttl_days)`,
		}
		const log = await ctx.events.openRun({ run_id: question.run_id, agent_id: entry.value.agent })
		turn.settling()
		await log.append([
			{ event_type: 'run.failed', payload: { error: error.message, code: error.code, usage: entry.value.usage } },
		])
		log.close()
		const next = await endRun(ctx.store, uid, question.run_id, { status: 'failed', error }, now())
		if (next) await ctx.queue.enqueue(jobOf(next))
	})
}
