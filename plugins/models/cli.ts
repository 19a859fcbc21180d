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
	status: { order: 0, load: () => import('./cli/status.ts') },
} satisfies CommandFile
