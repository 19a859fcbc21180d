/** The commands of the host itself. */
import type { CommandFile } from './command.ts'
import { listed } from './listed.ts'

export default {
	commands: {
		start: listed('gateway', 2, 'Start the gateway in this terminal', () => import('./commands/start.ts')),
		status: listed('gateway', 3, 'Show the state of the gateway', () => import('./commands/status.ts')),
		doctor: listed('gateway', 4, 'Find problems and show how to fix them', () => import('./commands/doctor.ts')),
		config: listed('gateway', 5, 'Check, explain and change the settings', () => import('./commands/config.ts')),
		plugins: listed(
			'gateway',
			6,
			'Show, create, check, install and remove plugins',
			() => import('./commands/plugins.ts'),
		),
		restore: listed('gateway', 8, 'Restore a home folder from a backup', () => import('./commands/restore.ts')),
		login: listed('access', 1, 'Store a token for the address of a gateway', () => import('./commands/login.ts')),
		logout: listed('access', 2, 'Remove the stored token', () => import('./commands/logout.ts')),
		completion: listed('shell', 1, 'Complete commands with the tab key', () => import('./commands/completion.ts')),
	},
} satisfies CommandFile
