import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		vault: {
			summary: 'Store secrets',
			group: 'access',
			order: 4,
			load: () => import('./cli/vault.ts'),
		},
		grants: {
			summary: 'Choose which agent may use which secret',
			group: 'access',
			order: 5,
			load: () => import('./cli/grants.ts'),
		},
	},
	hints: {
		'GET /v1/vault/secrets': 'svc vault list',
		'POST /v1/vault/secrets': 'svc vault set NAME',
		'PUT /v1/vault/secrets/{id}': 'svc vault set NAME',
		'GET /v1/vault/grants': 'svc grants list',
		'DELETE /v1/vault/grants/{grant_id}': 'svc grants revoke {grant_id}',
	},
} satisfies CommandFile
