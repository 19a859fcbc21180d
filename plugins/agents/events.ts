import type { EventType } from '../../core/plugin.ts'

export default {
	'agent.created': {
		description: 'An agent was created.',
		payload: {
			persona: 'Whether it has a persona.',
			config: 'The keys of its config.',
		},
	},
	'agent.updated': {
		description: 'An agent was changed.',
		payload: {
			fields: 'The changed fields: `persona` or `config`.',
		},
	},
	'agent.deleted': {
		description: 'An agent was deleted.',
		payload: {
			uid: 'Its internal id, under which its records were stored.',
		},
	},
	'agent.reset': {
		description: 'An agent began a new session with an empty short-term memory.',
		payload: {
			session_id: 'The new session.',
		},
	},
} satisfies Record<string, EventType>
