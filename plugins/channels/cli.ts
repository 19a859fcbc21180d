import type { CommandFile } from '../../core/cli/command.ts'
import { listed } from '../../core/cli/listed.ts'

export default {
	commands: {
		channels: listed('abilities', 6, 'Reach agents by Telegram, Discord and others', () => import('./cli/channels.ts')),
		say: listed('work', 7, 'Send a message to a chat as its agent, without a run', () => import('./cli/say.ts')),
	},
	status: { order: 2, load: () => import('./cli/status.ts') },
	hints: {
		'GET /v1/channels': 'svc channels bindings',
		'GET /v1/channels/{id}/bindings': 'svc channels bindings {id}',
		'DELETE /v1/channels/{id}/bindings/{binding_id}': 'svc channels unbind {id} {binding_id}',
	},
} satisfies CommandFile
