import type { Context } from '../../core/plugin.ts'
import type {} from '../runs/contract.ts'
import type { EventSettings } from './contract.ts'

/** After more urgent work of the start. */
const FIRST_MS = 2_000
const EVERY_MS = 60 * 60 * 1000
const DAY_MS = 24 * 60 * 60 * 1000

/** Prunes soon after the start, then every hour, until the instance is released. */
export function keepPruned(ctx: Context<EventSettings>): void {
	const work = async (): Promise<void> => {
		const deleted = await prune(ctx)
		if (deleted > 0) ctx.log.info(`${deleted} events older than ${ctx.config.retention_days} days were deleted`)
	}
	ctx.after(FIRST_MS, work)
	ctx.every(EVERY_MS, work)
}

/**
 * Deletes events older than the retention, except those of runs that have not ended: they are the run's journal.
 * Without a runs plugin, every run counts as running.
 */
export async function prune(ctx: Context<EventSettings>): Promise<number> {
	const before = new Date(Date.now() - ctx.config.retention_days * DAY_MS).toISOString()
	return ctx.events.prune(before, async (run) => {
		const runs = ctx.find('runs')
		return runs ? runs.isActive(run) : true
	})
}
