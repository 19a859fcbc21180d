import type { CommandFile } from '../../core/cli/command.ts'
import { listed } from '../../core/cli/listed.ts'

export default {
	commands: {
		vault: listed('access', 4, 'Store secrets', () => import('./cli/vault.ts')),
		grants: listed('access', 5, 'Choose which agent may use which secret', () => import('./cli/grants.ts')),
	},
	hints: {
		'GET /v1/vault/secrets': 'svc vault list',
		'POST /v1/vault/secrets': 'svc vault set NAME',
		'PUT /v1/vault/secrets/{id}': 'svc vault set NAME',
		'GET /v1/vault/grants': 'svc grants list',
		'DELETE /v1/vault/grants/{grant_id}': 'svc grants revoke {grant_id}',
	},
} satisfies CommandFile
