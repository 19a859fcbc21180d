/**
 * Notes that agents keep for their users: the example of a plugin that uses everything there is. Each file answers one
 * question, as in the gateway's own plugins: settings.ts, notes.ts (the service), routes.ts, events.ts, cli.ts (commands of
 * `svc`) and doctor.ts (checks of `svc doctor`).
 */
import type { Plugin } from 'svc-gateway'
import { events } from './events.ts'
import { openNotes } from './notes.ts'
import type { Notes } from './notes.ts'
import { routes } from './routes.ts'
import type { Settings } from './settings.ts'

export default {
	name: 'notes',
	version: '1.0.0',
	needs: ['agents'],
	scopes: { 'notes:read': 'Read notes', 'notes:write': 'Delete notes' },
	errors: { notes_full: { status: 409, description: 'The agent keeps as many notes as `max_per_agent` allows.' } },
	events,

	start(ctx) {
		const notes = openNotes(ctx)
		ctx.primitive({
			name: 'notes.add',
			description: 'Keeps a note. Use it for what the user wants to have written down.',
			parameters: {
				type: 'object',
				properties: { text: { type: 'string', description: 'The note.' } },
				required: ['text'],
			},
			run: ({ text }, call) => notes.add(call.agent, text, call.key),
		})
		ctx.primitive({
			name: 'notes.list',
			description: 'Lists the notes that were kept. Use it when the user asks for them.',
			run: (_, call) => notes.list(call.agent.uid),
		})
		ctx.extend('metrics', {
			metrics: { notes_kept: { help: 'Notes that are kept, by agent.', type: 'gauge' } },
			read: async () => ({
				notes_kept: (await notes.usage()).map((one) => ({ labels: { agent: one.agent }, value: one.notes })),
			}),
		})
		ctx.on('agent.deleted', ({ payload }) => notes.forget(String(payload.uid)))
		ctx.every(ctx.config.expire_every_s * 1000, () => notes.expire())
		return notes
	},

	http: routes,
} satisfies Plugin<Settings, Notes>

declare module 'svc-gateway' {
	interface Services {
		notes: Notes
	}
}
