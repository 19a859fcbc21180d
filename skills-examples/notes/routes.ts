import type { Context, Server } from 'svc-gateway'
import type { Notes } from './notes.ts'
import type { Settings } from './settings.ts'

/** Call `notes` only in the handlers: then a request that began before a reload reaches the service of the new instance. */
export function routes(server: Server, { joi }: Context<Settings>, notes: Notes): void {
	const read = { access: { scope: ['notes:read', '*'] } }
	const write = { access: { scope: ['notes:write', '*'] } }
	server.route([
		{
			method: 'GET',
			path: '/v1/notes',
			options: { id: 'notes.list', description: 'List notes', tags: ['api', 'notes'], auth: read },
			handler: () => notes.list(),
		},
		{
			method: 'GET',
			path: '/v1/notes/usage',
			options: { id: 'notes.usage', description: 'Count the notes of each agent', tags: ['api', 'notes'], auth: read },
			handler: () => notes.usage(),
		},
		{
			method: 'DELETE',
			path: '/v1/notes/{note_id}',
			options: {
				id: 'notes.delete',
				description: 'Delete a note',
				tags: ['api', 'notes'],
				auth: write,
				validate: { params: joi.object({ note_id: joi.string().max(200).required() }) },
			},
			async handler(request, h) {
				await notes.delete(String(request.params.note_id))
				return h.response().code(204)
			},
		},
	])
}
