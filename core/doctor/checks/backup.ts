/** Whether a copy of everything is at hand. */
import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { listBackups } from '../../backup/list.ts'
import { isHalfPlaced } from '../../backup/place.ts'
import { messageOf } from '../../errors.ts'
import { error, note, ok, warning } from '../contract.ts'
import type { Check, Patient } from '../contract.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Without a schedule: a home of that age should have a backup of that age. */
const HOME_DAYS = 7
const BACKUP_DAYS = 30

export const backupChecks: Check[] = [
	{
		id: 'backup.recent',
		about: 'whether there is a recent backup',
		async run(patient) {
			const { backups, unreadable } = await listBackups(await folderOf(patient))
			const newest = Date.parse(backups.at(-1)?.created_at ?? '')
			const bad = unreadable
				.slice(0, 5)
				.map(({ file, message }) =>
					warning(
						`the backup ${file} cannot be read: ${message}`,
						'take another one: svc backup create; and remove that file',
					),
				)
			const { schedule, timezone } = (await patient.config()).backups
			const due = schedule === null ? Date.now() - BACKUP_DAYS * DAY_MS : await lastDue(schedule, timezone)
			if (typeof due === 'string')
				return [
					...bad,
					error(`backups.schedule in gateway.yaml is no schedule: ${due}`, 'write five cron fields, such as 0 3 * * *'),
				]
			// NaN, where there is none, is not recent.
			if (newest >= due) return [...bad, ok(`the latest backup is of ${new Date(newest).toISOString()}`)]
			const since = await usedSince(patient.home)
			const isYoung = since === undefined || since > (schedule === null ? Date.now() - HOME_DAYS * DAY_MS : due)
			if (isYoung) return [...bad, ok('the home is too young to need a backup')]
			const last = Number.isNaN(newest)
				? 'none was ever taken'
				: `the latest one is of ${new Date(newest).toISOString()}`
			if (schedule === null)
				return [
					...bad,
					note(
						`no backup is younger than ${BACKUP_DAYS} days: ${last}`,
						'take one: svc backup create; or set backups.schedule in gateway.yaml',
					),
				]
			return [
				...bad,
				warning(
					`a backup was due at ${new Date(due).toISOString()}, and ${last}`,
					'take one, which says what is in its way: svc backup create; the gateway takes them only while it runs',
				),
			]
		},
	},
	{
		id: 'restore.finished',
		about: 'whether a restore was interrupted',
		async run({ home }) {
			if (!isHalfPlaced(home)) return []
			return error('a restore was interrupted half way', 'restore again, which goes on from there: svc restore FILE')
		},
	},
]

async function folderOf({ home, config }: Patient): Promise<string> {
	return resolve(home, (await config()).backups.folder)
}

/** When the schedule wanted the last one that must be there by now; or why it is none. */
async function lastDue(schedule: string, timezone: string | null): Promise<number | string> {
	const { Cron } = await import('croner')
	try {
		const cron = new Cron(schedule, { mode: '5-part', paused: true, ...(timezone !== null && { timezone }) })
		// It takes a while to make one.
		const [due] = cron.previousRuns(1, new Date(Date.now() - HOUR_MS))
		return due?.getTime() ?? 0
	} catch (thrown) {
		return messageOf(thrown)
	}
}

/** The age of what the first start has made, as far as it can be told; undefined where there was none yet. */
async function usedSince(home: string): Promise<number | undefined> {
	const found = await Promise.all(
		['keys/vault.key', 'data'].map((name) => stat(join(home, name)).catch(() => undefined)),
	)
	const times = found.flatMap((one) => (one ? [one.mtimeMs] : []))
	return times.length > 0 ? Math.min(...times) : undefined
}
