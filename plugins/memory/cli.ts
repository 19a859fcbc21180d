import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		memory: {
			summary: 'Search and compact long-term memory',
			group: 'abilities',
			order: 2,
			load: () => import('./cli/memory.ts'),
		},
	},
	hints: {
		'GET /v1/agents/{id}/memory': 'svc memory list {id}',
		'GET /v1/agents/{id}/memory/compactions': 'svc memory compactions {id}',
	},
} satisfies CommandFile
