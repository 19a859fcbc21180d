/** The commands of the host itself. */
import type { CommandFile } from './command.ts'

export default {
	commands: {
		start: {
			summary: 'Start the gateway in this terminal',
			group: 'gateway',
			order: 2,
			load: () => import('./commands/start.ts'),
		},
		status: {
			summary: 'Show the state of the gateway',
			group: 'gateway',
			order: 3,
			load: () => import('./commands/status.ts'),
		},
		doctor: {
			summary: 'Find problems and show how to fix them',
			group: 'gateway',
			order: 4,
			load: () => import('./commands/doctor.ts'),
		},
		config: {
			summary: 'Check, explain and change the settings',
			group: 'gateway',
			order: 5,
			load: () => import('./commands/config.ts'),
		},
		plugins: {
			summary: 'Show, create, check, install and remove plugins',
			group: 'gateway',
			order: 6,
			load: () => import('./commands/plugins.ts'),
		},
		restore: {
			summary: 'Restore a home folder from a backup',
			group: 'gateway',
			order: 8,
			load: () => import('./commands/restore.ts'),
		},
		login: {
			summary: 'Store a token for the address of a gateway',
			group: 'access',
			order: 1,
			load: () => import('./commands/login.ts'),
		},
		logout: {
			summary: 'Remove the stored token',
			group: 'access',
			order: 2,
			load: () => import('./commands/logout.ts'),
		},
		completion: {
			summary: 'Complete commands with the tab key',
			group: 'shell',
			order: 1,
			load: () => import('./commands/completion.ts'),
		},
	},
} satisfies CommandFile
