import type { CommandFile } from '../../core/cli/command.ts'
import { listed } from '../../core/cli/listed.ts'

export default {
	commands: {
		events: listed('work', 6, 'Follow events as they happen', () => import('./cli/events.ts')),
		audit: listed('work', 7, 'Read past events', () => import('./cli/audit.ts')),
	},
} satisfies CommandFile
