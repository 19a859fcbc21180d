import type { EventType } from '../../core/plugin.ts'

export default {
	'backup.created': {
		description: 'A backup was made, by request or by the schedule.',
		payload: {
			backup_id: 'Its id.',
			bytes: 'Size of the file.',
			records: 'How many records it holds.',
			head: 'Where the event log stood.',
			trigger: '`request` or `schedule`.',
			includes_key: "Whether the vault's key is in it.",
		},
	},
	'backup.failed': {
		description: 'A backup could not be made.',
		payload: {
			trigger: '`request` or `schedule`.',
			message: 'What is wrong, for people.',
		},
	},
	'backup.removed': {
		description: 'A backup was removed, on request or since newer scheduled ones took its place.',
		payload: {
			backup_id: 'Its id.',
			reason: '`request` or `retention`.',
		},
	},
} satisfies Record<string, EventType>
