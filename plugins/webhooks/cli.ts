import type { CommandFile } from '../../core/cli/command.ts'
import { listed } from '../../core/cli/listed.ts'

export default {
	commands: {
		webhooks: listed('abilities', 5, 'Let other services start runs', () => import('./cli/webhooks.ts')),
	},
	hints: { 'POST /v1/agents/{name}/webhooks/{slug}/rotate': 'svc webhooks rotate {name} {slug}' },
} satisfies CommandFile
