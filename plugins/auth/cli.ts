import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		tokens: {
			summary: 'Create, list and revoke API tokens',
			group: 'access',
			order: 3,
			load: () => import('./cli/tokens.ts'),
		},
	},
	hints: {
		'GET /v1/auth/tokens': 'svc tokens list',
	},
} satisfies CommandFile
