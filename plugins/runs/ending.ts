/** How a run ends, by itself or because it is stopped, and what follows from that. */
import { now } from '../../core/ids.ts'
import type { Context } from '../../core/plugin.ts'
import type { Job, Store } from '../../core/store/ports.ts'
import type { RunRecord } from './contract.ts'
import { endIn } from './journal.ts'
import { keys } from './keys.ts'
import { aboutJob, endRun, isEnded } from './records.ts'
import type { Ended } from './records.ts'
import { withRun } from './turns.ts'

type Place = Pick<Context, 'store' | 'queue' | 'events' | 'log'>

/** Ends the record of a run whose log has ended. Then others go on, and what it started is stopped where it did not complete. */
export async function end(ctx: Place, run: RunRecord, ended: Ended, at: string): Promise<void> {
	for (const job of await endRun(ctx.store, run.agent_uid, run.run_id, ended, at)) enqueue(ctx, job)
	if (ended.status !== 'completed') await stopChildren(ctx, run)
}

/** Ends a run as stopped, whoever has it, and with it all that it started. Settles when nothing of them goes on. */
export function stop(ctx: Place, uid: string, run_id: string): Promise<void> {
	return withRun(
		run_id,
		async (turn) => {
			const entry = await ctx.store.get<RunRecord>(keys.run(uid, run_id))
			if (!entry) return
			const run = entry.value
			// What one that has completed started may go on still.
			if (isEnded(run.status)) return stopChildren(ctx, run)
			const log = await ctx.events.openRun({ run_id, agent_id: run.agent })
			turn.settling()
			// It may have ended in its log just before a crash, and nobody has taken it up since.
			const ended = endIn(log)
			if (!ended) await log.append([{ event_type: 'run.stopped', payload: {} }])
			log.close()
			await end(ctx, run, ended ?? { status: 'stopped' }, now())
			if (ended?.status === 'completed') await stopChildren(ctx, run)
		},
		'stopped',
	)
}

/** From the top down, never the other way, so that no two of them wait for each other. */
export async function stopChildren(ctx: Place, { agent_uid, run_id }: RunRecord): Promise<void> {
	// Read anew: it may have started some since it was taken up.
	const entry = await ctx.store.get<RunRecord>(keys.run(agent_uid, run_id))
	await Promise.all((entry?.value.children ?? []).map((child) => stop(ctx, agent_uid, child)))
}

/** True for a run that goes on though the one that started it was stopped or failed: a crash came between. */
export async function isOrphan(store: Store, { agent_uid, parent }: RunRecord): Promise<boolean> {
	if (!parent) return false
	const status = (await store.get<RunRecord>(keys.run(agent_uid, parent.run_id)))?.value.status
	return status === 'stopped' || status === 'failed'
}

/** The lane in the store is what counts; a job is only a hint, and the next start makes one that got lost. */
export function enqueue({ queue, log }: Pick<Context, 'queue' | 'log'>, job: Job): void {
	queue
		.enqueue(job)
		.catch((error: unknown) =>
			log.error({ err: error, ...aboutJob(job) }, 'a run could not be queued; it goes on after the next start'),
		)
}
