import type { CommandFile } from '../../core/cli/command.ts'
import { listed } from '../../core/cli/listed.ts'

export default {
	commands: {
		backup: listed('gateway', 7, 'Take, list, verify and remove backups', () => import('./cli/backup.ts')),
	},
} satisfies CommandFile
