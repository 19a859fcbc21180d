import { definePlugin } from '../../core/plugin.ts'
import { openBackups } from './backups.ts'
import type { BackupSettings } from './contract.ts'
import { routes } from './routes.ts'
import { checkSchedule, checkTimezone } from './schedule.ts'

/** Copies of everything that the gateway keeps, on request and by the clock. */
export default definePlugin<BackupSettings>({
	name: 'backups',
	needs: ['auth'],
	// One at a time is made of a home, and the next instance would clear away what this one has under way.
	exclusive: true,
	config: (joi) =>
		joi.object<BackupSettings>({
			schedule: joi.string().custom(checkSchedule).allow(null).required(),
			timezone: joi.string().custom(checkTimezone).allow(null).required(),
			folder: joi.string().required(),
			keep: joi.number().required(),
			include_key: joi.boolean().required(),
			min_free_mib: joi.number().required(),
		}),
	start: (ctx) => openBackups(ctx),
	http: (server, ctx) => routes(server, ctx),
})
