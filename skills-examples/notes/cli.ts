/** `svc notes`: found by the name of this file, loaded when the command is called. */
import type { CommandFile } from 'svc-gateway'

interface Note {
	note_id: string
	agent: string
	text: string
	created_at: string
}

export default {
	commands: {
		notes: {
			summary: 'List and delete the notes of agents',
			examples: `
Examples:
  svc notes
  svc notes list --agent ada
  svc notes delete 0198c2d4`,
			commands: {
				list: {
					description: 'List the notes of all agents, or of one',
					options: { '--agent <agent>': 'of this agent only' },
					async run({ api, out }, { agent }: { agent?: string }) {
						const all = await api.request<Note[]>('GET', '/v1/notes')
						const notes = all.filter((note) => agent === undefined || note.agent === agent)
						out.answer(notes, (list, style) =>
							style.table(
								['note', 'agent', 'text'],
								list.map((one) => [one.note_id, one.agent, style.plain(one.text)]),
								'No notes yet.',
							),
						)
					},
				},
				delete: {
					description: 'Delete a note',
					arguments: '<note>',
					async run({ api, out }, { note }: { note: string }) {
						await api.request('DELETE', `/v1/notes/${encodeURIComponent(note)}`)
						out.answer({ note_id: note }, (_, style) => `${style.good('Deleted')} ${note}.`)
					},
				},
			},
		},
	},
} satisfies CommandFile
