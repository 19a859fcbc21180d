import type { CommandFile } from '../../core/cli/command.ts'
import { listed } from '../../core/cli/listed.ts'

export default {
	commands: {
		profile: listed(
			'abilities',
			2.5,
			'Read and edit what an agent always knows about itself and its users',
			() => import('./cli/profile.ts'),
		),
	},
	hints: {
		'GET /v1/agents/{name}/profile': 'svc profile show {name}',
	},
} satisfies CommandFile
