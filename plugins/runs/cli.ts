import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		run: {
			summary: 'Give an agent a prompt and follow its answer',
			group: 'work',
			order: 2,
			load: () => import('./cli/run.ts'),
		},
		chat: {
			summary: 'Talk with an agent',
			group: 'work',
			order: 3,
			load: () => import('./cli/chat.ts'),
		},
		runs: {
			summary: 'List, read, follow, cancel and retry runs',
			group: 'work',
			order: 4,
			load: () => import('./cli/runs.ts'),
		},
		questions: {
			summary: 'List and answer questions of agents',
			group: 'work',
			order: 5,
			load: () => import('./cli/questions.ts'),
		},
		conversations: {
			summary: 'List, read, summarize and delete conversations; show what the model receives',
			group: 'work',
			order: 6,
			load: () => import('./cli/conversations.ts'),
		},
	},
	candidates: {
		run: async (cli, prefix, signal) => (await import('../../core/cli/run-id.ts')).runCandidates(cli, prefix, signal),
	},
	status: { order: 1, load: () => import('./cli/status.ts') },
	hints: {
		'GET /v1/agents/{name}/questions': 'svc questions list {name}',
		'GET /v1/agents/{name}/conversations': 'svc conversations list {name}',
	},
} satisfies CommandFile
