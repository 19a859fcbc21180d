/**
 * Notes that agents keep for their users: an example that uses every part of the plugin contract. Each file answers one question,
 * as in the gateway's own plugins: settings.ts, notes.ts (the service), routes.ts, events.ts, cli.ts (commands of
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
	errors: { notes_full: { status: 409, description: 'The agent has as many notes as `max_per_agent` allows.' } },
	events,

	start(ctx) {
		const notes = openNotes(ctx)
		ctx.primitive({
			name: 'notes.add',
			description: 'Adds a note. Use it for what the user wants to have written down.',
			parameters: {
				type: 'object',
				properties: { text: { type: 'string', description: 'The note.' } },
				required: ['text'],
			},
			run: ({ text }, call) => notes.add(call.agent, text, call.key),
		})
		ctx.primitive({
			name: 'notes.list',
			description: 'Lists the notes. Use it when the user asks for them.',
			run: (_, call) => notes.list(call.agent.uid),
		})
		ctx.extend('metrics', {
			metrics: { notes_kept: { help: 'Number of notes, by agent.', type: 'gauge' } },
			read: async () => ({
				notes_kept: (await notes.usage()).map((usage) => ({ labels: { agent: usage.agent }, value: usage.notes })),
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
