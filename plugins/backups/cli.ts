import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		backup: {
			summary: 'Take, list, verify and remove backups',
			group: 'gateway',
			order: 7,
			load: () => import('./cli/backup.ts'),
		},
	},
} satisfies CommandFile
