import { Cron } from 'croner'
import type Joi from 'joi'
import type { BackupSettings } from './contract.ts'

export interface BackupSchedule {
	/** ISO 8601; null where there is none. */
	next(): string | null
	stop(): void
}

/**
 * Calls `take` when it is time. One that is still under way when the next is due makes that one fall out, and those for
 * which no gateway ran are not made up for.
 */
export function takeOnSchedule(
	{ schedule, timezone }: Pick<BackupSettings, 'schedule' | 'timezone'>,
	take: () => Promise<void>,
): BackupSchedule {
	if (schedule === null) return { next: () => null, stop: () => {} }
	const cron = new Cron(schedule, { ...(timezone !== null && { timezone }), unref: true, protect: true }, take)
	return { next: () => cron.nextRun()?.toISOString() ?? null, stop: () => cron.stop() }
}

/** For joi: five cron fields that come some time. */
export function checkSchedule(text: string, helpers: Joi.CustomHelpers): string | Joi.ErrorReport {
	try {
		if (new Cron(text, { paused: true, mode: '5-part' }).nextRun()) return text
	} catch {
		// Told below.
	}
	return helpers.message({
		custom:
			'{#label} must be five cron fields (minute hour day month weekday) that come some time, such as "0 3 * * *"',
	})
}

/** For joi: a name of the time zone database. */
export function checkTimezone(name: string, helpers: Joi.CustomHelpers): string | Joi.ErrorReport {
	try {
		new Intl.DateTimeFormat('en', { timeZone: name })
		return name
	} catch {
		return helpers.message({ custom: '{#label} must be the name of a time zone, such as Europe/Rome' })
	}
}
