import type { EventType } from '../../core/plugin.ts'

export default {
	'backup.created': {
		description: 'A backup was created, on request or by the schedule.',
		payload: {
			backup_id: 'Its id.',
			bytes: 'Size of the file.',
			records: 'How many records it contains.',
			head: 'The newest position in the event log.',
			trigger: '`request` or `schedule`.',
			includes_key: "Whether it contains the vault's key.",
		},
	},
	'backup.failed': {
		description: 'A backup could not be created.',
		payload: {
			trigger: '`request` or `schedule`.',
			message: 'Why, as text for people.',
		},
	},
	'backup.removed': {
		description: 'A backup was removed, on request or because newer scheduled ones replaced it.',
		payload: {
			backup_id: 'Its id.',
			reason: '`request` or `retention`.',
		},
	},
} satisfies Record<string, EventType>
