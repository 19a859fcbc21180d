import type { CommandFile } from '../../core/cli/command.ts'
import { listed } from '../../core/cli/listed.ts'

export default {
	commands: {
		run: listed('work', 2, 'Give an agent a prompt and follow its answer', () => import('./cli/run.ts')),
		chat: listed('work', 3, 'Talk with an agent', () => import('./cli/chat.ts')),
		runs: listed('work', 4, 'List, read, follow, cancel and retry runs', () => import('./cli/runs.ts')),
		questions: listed('work', 5, 'List and answer questions of agents', () => import('./cli/questions.ts')),
		conversations: listed(
			'work',
			6,
			'List, read, summarize and delete conversations; show what the model receives',
			() => import('./cli/conversations.ts'),
		),
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
