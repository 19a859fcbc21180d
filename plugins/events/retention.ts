import type { Context } from '../../core/plugin.ts'
import type {} from '../runs/contract.ts'
import type { EventSettings } from './contract.ts'

/** A start has more urgent things to do. */
const FIRST_MS = 2_000
const EVERY_MS = 60 * 60 * 1000
const DAY_MS = 24 * 60 * 60 * 1000

/** Prunes soon after the start and then every hour, for as long as the instance lives. */
export function keepPruned(ctx: Context<EventSettings>): void {
	const work = async (): Promise<void> => {
		const deleted = await prune(ctx)
		if (deleted > 0) ctx.log.info(`${deleted} events older than ${ctx.config.retention_days} days were deleted`)
	}
	ctx.after(FIRST_MS, work)
	ctx.every(EVERY_MS, work)
}

/**
 * Deletes events older than the retention. Events of a run that has not ended stay, however old: they are its journal.
 * Without a runs plugin, every run counts as running.
 */
export async function prune(ctx: Context<EventSettings>): Promise<number> {
	const before = new Date(Date.now() - ctx.config.retention_days * DAY_MS).toISOString()
	return ctx.events.prune(before, async (run) => {
		const runs = ctx.find('runs')
		return runs ? runs.isActive(run) : true
	})
}
