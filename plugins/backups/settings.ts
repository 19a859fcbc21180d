import { Cron } from 'croner'
import type { CustomHelpers } from 'joi'
import { defineSettings } from '../../config/declaration.ts'
import { allSettings, count, flag } from '../../config/fields.ts'
import { isTimeZone } from '../shared/time-zone.ts'
import type { BackupSettings } from './contract.ts'

export default defineSettings<BackupSettings>({
	description: 'Copies of everything that the gateway stores.',
	topic: 'Operation',
	reads: { min_free_mib: 'store.min_free_mib' },
	paths: ['folder'],
	schema: (joi) =>
		allSettings<BackupSettings, 'min_free_mib'>({
			schedule: joi
				.string()
				.max(256)
				.custom(schedule)
				.allow(null)
				.default(null)
				.description(
					'When to take a backup, as five cron fields such as "0 3 * * *"; null: on request only. Default null.',
				),
			timezone: joi
				.string()
				.max(64)
				.custom(timezone)
				.allow(null)
				.default(null)
				.description("Time zone of the schedule, such as Europe/Rome; null: the machine's. Default null."),
			folder: joi
				.string()
				.max(4096)
				.default('backups')
				.description('Folder of the backups, relative to the home folder. Default backups.'),
			keep: count(1, 1000, 7, 'Scheduled backups that are kept; older ones are removed.'),
			include_key: flag(
				true,
				"Whether backups contain the vault's key. With it, anyone who has the file can decrypt its secrets; without it, nobody can.",
			),
		}),
})

/** Accepts five cron fields that match some future time. */
function schedule(text: string, helpers: CustomHelpers): unknown {
	try {
		if (new Cron(text, { paused: true, mode: '5-part' }).nextRun()) return text
	} catch {
		// Reported below.
	}
	return helpers.message({
		custom: 'must be five cron fields (minute hour day month weekday) that match some time, such as "0 3 * * *"',
	})
}

function timezone(name: string, helpers: CustomHelpers): unknown {
	return isTimeZone(name) ? name : helpers.message({ custom: 'must be the name of a time zone, such as Europe/Rome' })
}
