import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		channels: {
			summary: 'Reach agents by Telegram, Discord and others',
			group: 'abilities',
			order: 6,
			load: () => import('./cli/channels.ts'),
		},
		say: {
			summary: 'Send a message to a chat as its agent, without a run',
			group: 'work',
			order: 7,
			load: () => import('./cli/say.ts'),
		},
	},
	status: { order: 2, load: () => import('./cli/status.ts') },
	hints: {
		'GET /v1/channels': 'svc channels bindings',
		'GET /v1/channels/{id}/bindings': 'svc channels bindings {id}',
		'DELETE /v1/channels/{id}/bindings/{binding_id}': 'svc channels unbind {id} {binding_id}',
	},
} satisfies CommandFile
