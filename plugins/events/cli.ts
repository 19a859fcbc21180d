import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		events: {
			summary: 'Follow events as they happen',
			group: 'work',
			order: 6,
			load: () => import('./cli/events.ts'),
		},
		audit: {
			summary: 'Read past events',
			group: 'work',
			order: 7,
			load: () => import('./cli/audit.ts'),
		},
	},
} satisfies CommandFile
