import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		usage: {
			summary: 'Show runs, tokens and cost',
			group: 'work',
			order: 6,
			load: () => import('./cli/usage.ts'),
		},
	},
} satisfies CommandFile
