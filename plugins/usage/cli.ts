import type { CommandFile } from '../../core/cli/command.ts'
import { listed } from '../../core/cli/listed.ts'

export default {
	commands: {
		usage: listed('work', 6, 'Show runs, tokens and cost', () => import('./cli/usage.ts')),
	},
} satisfies CommandFile
