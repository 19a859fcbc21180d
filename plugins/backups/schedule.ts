import { Cron } from 'croner'
import type { BackupSettings } from './contract.ts'

export interface BackupSchedule {
	/** ISO 8601; null without a schedule. */
	next(): string | null
	stop(): void
}

/**
 * Calls `take` when a backup is due. Skips it if the previous one is still in progress. Backups that were due while no gateway
 * ran are not taken later.
 */
export function takeOnSchedule(
	{ schedule, timezone }: Pick<BackupSettings, 'schedule' | 'timezone'>,
	take: () => Promise<void>,
): BackupSchedule {
	if (schedule === null) return { next: () => null, stop: () => {} }
	const cron = new Cron(schedule, { ...(timezone !== null && { timezone }), unref: true, protect: true }, take)
	return { next: () => cron.nextRun()?.toISOString() ?? null, stop: () => cron.stop() }
}
