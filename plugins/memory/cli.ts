import type { CommandFile } from '../../core/cli/command.ts'
import { listed } from '../../core/cli/listed.ts'

export default {
	commands: {
		memory: listed('abilities', 2, 'Search and compact long-term memory', () => import('./cli/memory.ts')),
	},
	hints: {
		'GET /v1/agents/{id}/memory': 'svc memory list {id}',
		'GET /v1/agents/{id}/memory/compactions': 'svc memory compactions {id}',
	},
} satisfies CommandFile
