import type { EventType } from '../../core/plugin.ts'

export default {
	'profile.changed': {
		description: 'The profile of an agent was changed.',
		payload: {
			version: 'Its version now.',
			bytes: 'The length of its text.',
			undone: 'Whether an earlier version was restored.',
		},
	},
} satisfies Record<string, EventType>
