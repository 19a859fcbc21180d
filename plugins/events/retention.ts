import type { Context } from '../../core/plugin.ts'
import type {} from '../runs/contract.ts'
import type { EventSettings } from './contract.ts'

/** A start has more urgent things to do. */
const FIRST_MS = 2_000
const EVERY_MS = 60 * 60 * 1000
const DAY_MS = 24 * 60 * 60 * 1000

/** Prunes soon after the start and then every hour, for as long as the instance lives. */
export function keepPruned(ctx: Context<EventSettings>): void {
	const due = (): void => {
		prune(ctx).then(
			(gone) => gone > 0 && ctx.log.info(`${gone} events older than ${ctx.config.retention_days} days were forgotten`),
			(error: unknown) => ctx.log.error({ err: error }, 'old events could not be forgotten; next try in an hour'),
		)
	}
	const first = setTimeout(due, FIRST_MS).unref()
	const every = setInterval(due, EVERY_MS).unref()
	ctx.defer(() => {
		clearTimeout(first)
		clearInterval(every)
	}, 'retention timers')
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
