import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		heartbeats: {
			summary: 'Start runs on a schedule',
			group: 'abilities',
			order: 4,
			load: () => import('./cli/heartbeats.ts'),
		},
	},
} satisfies CommandFile
