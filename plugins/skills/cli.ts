import type { CommandFile } from '../../core/cli/command.ts'
import { listed } from '../../core/cli/listed.ts'

export default {
	commands: {
		skills: listed('abilities', 1, 'Install, review and approve skills', () => import('./cli/skills.ts')),
	},
	hints: {
		'GET /v1/agents/{id}/skills': 'svc skills list {id}',
		'GET /v1/agents/{id}/skills/{skill_id}': 'svc skills show {id} {skill_id}',
	},
} satisfies CommandFile
