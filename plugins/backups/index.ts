import { definePlugin } from '../../core/plugin.ts'
import type { BackupSettings } from './contract.ts'

/** Copies of everything that the gateway keeps, on request and by the clock. */
export default definePlugin<BackupSettings>({
	name: 'backups',
	needs: ['auth'],
	config: (joi) =>
		joi.object<BackupSettings>({
			schedule: joi.string().allow(null).required(),
			timezone: joi.string().allow(null).required(),
			folder: joi.string().required(),
			keep: joi.number().required(),
			include_key: joi.boolean().required(),
		}),
})
