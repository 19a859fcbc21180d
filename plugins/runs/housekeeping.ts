/** What time does to runs: questions expire, ended runs and used keys are forgotten. */
import { now } from '../../core/ids.ts'
import type { Context } from '../../core/plugin.ts'
import type { Store } from '../../core/store/ports.ts'
import { close } from './asks.ts'
import type { Question, RunRecord, RunSettings } from './contract.ts'
import { end } from './ending.ts'
import { keys } from './keys.ts'
import type { IndexEntry } from './keys.ts'
import { isEnded } from './records.ts'
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
			const isOpen = value.answer === null && value.closed === undefined
			if (isOpen && asked < at - config.question_ttl_days * DAY_MS) await expire(ctx, uid, value)
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
		if (entry && (await hasOpenChild(store, entry.value))) continue // the result will ask for it
		if (entry) {
			await store.delete(keys.family(value.uid, run_id))
			if (entry.value.given) await store.delete(keys.given(value.uid, run_id))
			await store.delete(keys.turn(value.uid, entry.value.conversation, run_id))
			await store.delete(entry.key)
		}
		await store.delete(key)
	}
}

async function hasOpenChild(store: Store, { agent_uid, children = [] }: RunRecord): Promise<boolean> {
	for (const child of children) {
		const entry = await store.get<RunRecord>(keys.run(agent_uid, child))
		if (entry && !isEnded(entry.value.status)) return true
	}
	return false
}

/** The time in a UUIDv7. */
function millisecondsOf(id: string): number {
	return Number.parseInt(id.replace('-', '').slice(0, 12), 16)
}

async function expire(ctx: Context<RunSettings>, uid: string, question: Question): Promise<void> {
	// Its call is in flight, and is told.
	if (question.live) return void (await close(ctx.store, uid, question.question_id, 'expired'))
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
		await end(ctx, entry.value, { status: 'failed', error }, now())
	})
}
