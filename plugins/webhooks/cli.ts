import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		webhooks: {
			summary: 'Let other services start runs',
			group: 'abilities',
			order: 5,
			load: () => import('./cli/webhooks.ts'),
		},
	},
	hints: { 'POST /v1/agents/{name}/webhooks/{slug}/rotate': 'svc webhooks rotate {name} {slug}' },
} satisfies CommandFile
