import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		init: {
			summary: 'Set up the home folder and a model provider',
			group: 'gateway',
			order: 1,
			load: () => import('./cli/init.ts'),
		},
	},
} satisfies CommandFile
