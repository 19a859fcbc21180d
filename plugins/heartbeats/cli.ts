import type { CommandFile } from '../../core/cli/command.ts'
import { listed } from '../../core/cli/listed.ts'

export default {
	commands: {
		heartbeats: listed('abilities', 4, 'Start runs on a schedule', () => import('./cli/heartbeats.ts')),
	},
} satisfies CommandFile
