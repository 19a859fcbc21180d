import type { CommandFile } from '../../core/cli/command.ts'
import { listed } from '../../core/cli/listed.ts'

export default {
	commands: {
		agents: listed('work', 1, 'Create, list, change and delete agents', () => import('./cli/agents.ts')),
	},
	candidates: {
		agent: async ({ api }, _prefix, signal) =>
			(await api.request<{ name: string }[]>('GET', '/v1/agents', undefined, { signal })).map(({ name }) => name),
	},
	hints: {
		'POST /v1/agents': 'svc agents create NAME',
		'PATCH /v1/agents/{name}': 'svc agents update {name}',
	},
} satisfies CommandFile
