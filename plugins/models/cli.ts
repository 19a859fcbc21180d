import type { CommandFile } from '../../core/cli/command.ts'
import { listed } from '../../core/cli/listed.ts'

export default {
	commands: {
		init: listed('gateway', 1, 'Set up the home folder and a model provider', () => import('./cli/init.ts')),
	},
	status: { order: 0, load: () => import('./cli/status.ts') },
} satisfies CommandFile
