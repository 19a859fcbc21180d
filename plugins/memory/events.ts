import type { EventType } from '../../core/plugin.ts'

export default {
	'memory.stored': {
		description: 'A fact was stored in long-term memory.',
		payload: {
			memory_id: 'Its id; that of an earlier memory if the content is the same.',
			tags: 'Its tags.',
			'replaces?': 'Ids of the older memories that it replaces.',
		},
	},
	'memory.recalled': {
		description: 'Memories were found for an agent: by its search, or for a prompt.',
		payload: {
			count: 'How many were found.',
			memory_ids: 'Their ids, best first.',
			'automatic?': 'True if the gateway added them to the prompt automatically.',
		},
	},
	'memory.forgotten': {
		description: 'A fact was removed from long-term memory.',
		payload: {
			memory_id: 'Its id.',
		},
	},
	'memory.compaction_started': {
		description: 'Compaction of long-term memory began.',
		payload: {
			compaction_id: 'Its id.',
			memories_before: 'How many memories there are.',
		},
	},
	'memory.compacted': {
		description: 'Compaction of long-term memory ended.',
		payload: {
			compaction_id: 'Its id.',
			status: '`completed` or `failed`; a failed compaction has changed nothing.',
			memories_before: 'How many memories there were.',
			memories_after: 'How many there are now; null if it failed.',
			merged: 'How many groups were merged into one memory each.',
			'error?': 'Why it failed.',
		},
	},
	'memory.compaction_undone': {
		description: 'A compaction of long-term memory was undone: the originals are back.',
		payload: {
			compaction_id: 'Its id.',
		},
	},
} satisfies Record<string, EventType>
