import { definePlugin } from '../../core/plugin.ts'
import type {} from '../metrics/contract.ts'
import events from './events.ts'
import { openBackups } from './backups.ts'
import type { BackupSettings, Backups } from './contract.ts'
import { routes } from './routes.ts'

/** Copies of everything that the gateway stores, on request and on a schedule. */
export default definePlugin<BackupSettings, Backups>({
	name: 'backups',
	needs: ['auth'],
	events,
	// A home has one backup in progress at a time, and the next instance would delete the unfinished files of this one.
	exclusive: true,
	start(ctx) {
		const backups = openBackups(ctx)
		ctx.extend('metrics', {
			metrics: {
				svc_backup_newest_timestamp_seconds: {
					help: 'When the newest backup was created, in seconds since 1970.',
					type: 'gauge',
				},
			},
			async read() {
				const newest = (await backups.list()).backups.at(-1)
				return { svc_backup_newest_timestamp_seconds: newest && Date.parse(newest.created_at) / 1000 }
			},
		})
		return backups
	},
	http: routes,
})
