import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		profile: {
			summary: 'Read and edit what an agent always knows about itself and its users',
			group: 'abilities',
			order: 2.5,
			load: () => import('./cli/profile.ts'),
		},
	},
	hints: {
		'GET /v1/agents/{name}/profile': 'svc profile show {name}',
	},
} satisfies CommandFile
