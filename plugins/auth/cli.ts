import type { CommandFile } from '../../core/cli/command.ts'
import { listed } from '../../core/cli/listed.ts'

export default {
	commands: {
		tokens: listed('access', 3, 'Create, list and revoke API tokens', () => import('./cli/tokens.ts')),
	},
	hints: {
		'GET /v1/auth/tokens': 'svc tokens list',
	},
} satisfies CommandFile
