import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		skills: {
			summary: 'Install, review and approve skills',
			group: 'abilities',
			order: 1,
			load: () => import('./cli/skills.ts'),
		},
	},
	hints: {
		'GET /v1/agents/{id}/skills': 'svc skills list {id}',
		'GET /v1/agents/{id}/skills/{skill_id}': 'svc skills show {id} {skill_id}',
	},
} satisfies CommandFile
