/** The types of events that this plugin emits; the first word is its name. */
export const events = {
	'notes.added': {
		description: 'An agent kept a note.',
		payload: { note_id: 'Its id.', length: 'Its characters.' },
	},
	'notes.deleted': {
		description: 'A note was deleted.',
		payload: { note_id: 'Its id.', reason: '`request` or `expired`.' },
	},
}
