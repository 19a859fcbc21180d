import type { CommandFile } from '../../core/cli/command.ts'
import { listed } from '../../core/cli/listed.ts'

export default {
	commands: {
		migrate: listed(
			'gateway',
			9,
			'Copy all data into a cluster, or back into a folder',
			() => import('./cli/migrate.ts'),
		),
	},
} satisfies CommandFile
