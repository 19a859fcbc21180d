/** The check of `svc doctor`: whether there is a recent backup. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { listBackups } from '../../core/backup/list.ts'
import { NotChecked, note, ok, warning } from '../../core/cli/doctor/contract.ts'
import type { DoctorFile, Finding } from '../../core/cli/doctor/contract.ts'
import type { BackupSettings } from './contract.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Without a schedule, a home older than `HOME_DAYS` should have a backup younger than `BACKUP_DAYS`. */
const HOME_DAYS = 7
const BACKUP_DAYS = 30

export default {
	checks: [
		{
			id: 'backup.recent',
			about: 'whether there is a recent backup',
			async run(context) {
				const { backups: settings, store } = await context.config()
				if (store.url !== null)
					throw new NotChecked(
						'the data is in a cluster (store.url), which backups of the gateway do not contain',
						'copy it with the tools of NATS: nats stream backup',
					)
				const { backups, unreadable } = await listBackups(settings.folder)
				const newest = Date.parse(backups.at(-1)?.created_at ?? '')
				const bad = unreadable
					.slice(0, 5)
					.map(({ file, message }) =>
						warning(
							`the backup ${file} cannot be read: ${message}`,
							'take a new one: svc backup create; and remove that file',
						),
					)
				return [...bad, await recency(context.home, settings, newest)]
			},
		},
	],
} satisfies DoctorFile

/** `newest`: when the latest backup was created; NaN without a backup. */
async function recency(
	home: string,
	{ schedule, timezone }: Pick<BackupSettings, 'schedule' | 'timezone'>,
	newest: number,
): Promise<Finding> {
	const due = schedule === null ? Date.now() - BACKUP_DAYS * DAY_MS : await lastDue(schedule, timezone)
	// NaN is not recent.
	if (newest >= due) return ok(`the latest backup was created at ${new Date(newest).toISOString()}`)
	const since = await usedSince(home)
	const isYoung = since === undefined || since > (schedule === null ? Date.now() - HOME_DAYS * DAY_MS : due)
	if (isYoung) return ok('the home is too new to need a backup')
	const last = Number.isNaN(newest)
		? 'none was ever taken'
		: `the latest one was created at ${new Date(newest).toISOString()}`
	if (schedule === null)
		return note(
			`no backup is younger than ${BACKUP_DAYS} days: ${last}`,
			'take one: svc backup create; or set backups.schedule in gateway.yaml',
		)
	return warning(
		`a backup was due at ${new Date(due).toISOString()}, and ${last}`,
		'run svc backup create, which shows what prevents a backup; the gateway takes scheduled backups only while it runs',
	)
}

/** The latest time at which the schedule required a backup that should exist already. */
async function lastDue(schedule: string, timezone: string | null): Promise<number> {
	const { Cron } = await import('croner')
	const cron = new Cron(schedule, { mode: '5-part', paused: true, ...(timezone !== null && { timezone }) })
	// Creating one takes a while.
	const [due] = cron.previousRuns(1, new Date(Date.now() - HOUR_MS))
	return due?.getTime() ?? 0
}

/** When the oldest of the files that the first start created was changed last; undefined before the first start. */
async function usedSince(home: string): Promise<number | undefined> {
	const found = await Promise.all(
		['keys/vault.key', 'data'].map((name) => stat(join(home, name)).catch(() => undefined)),
	)
	const times = found.flatMap((one) => (one ? [one.mtimeMs] : []))
	return times.length > 0 ? Math.min(...times) : undefined
}
