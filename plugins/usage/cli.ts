import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		usage: {
			summary: 'Show the tokens and the cost of model calls',
			group: 'work',
			order: 6,
			load: () => import('./cli/usage.ts'),
		},
	},
} satisfies CommandFile
