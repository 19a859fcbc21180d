/** The types of events that this plugin emits; the first word is its name. */
export const events = {
	'notes.added': {
		description: 'An agent added a note.',
		payload: { note_id: 'Its id.', length: 'Its number of characters.' },
	},
	'notes.deleted': {
		description: 'A note was deleted.',
		payload: { note_id: 'Its id.', reason: '`request` or `expired`.' },
	},
}
