import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		migrate: {
			summary: 'Copy all data into a cluster, or back into a folder',
			group: 'gateway',
			order: 9,
			load: () => import('./cli/migrate.ts'),
		},
	},
} satisfies CommandFile
