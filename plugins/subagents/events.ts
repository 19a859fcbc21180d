import type { EventType } from '../../core/plugin.ts'

export default {
	'subagent.spawned': {
		description: 'An agent started a sub-agent.',
		payload: {
			run_id: 'Its run.',
			prompt: 'Its prompt; cut if long.',
			wait: 'Whether the parent waits for it.',
		},
	},
	'subagent.completed': {
		description: 'A sub-agent ended with a result.',
		payload: {
			run_id: 'Its run.',
		},
	},
	'subagent.failed': {
		description: 'A sub-agent ended with an error.',
		payload: {
			run_id: 'Its run.',
			code: 'The code of its error; `stopped` if it was stopped.',
		},
	},
} satisfies Record<string, EventType>
