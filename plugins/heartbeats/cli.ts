import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		heartbeats: {
			summary: 'Start runs by the clock',
			group: 'abilities',
			order: 4,
			load: () => import('./cli/heartbeats.ts'),
		},
	},
} satisfies CommandFile
