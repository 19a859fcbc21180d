import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { agentName } from '../shared/agent-name.ts'
import { scoped } from '../shared/scopes.ts'
import type {} from '../agents/contract.ts'
import type { LongTermMemory, MemorySettings } from './contract.ts'
import { MAX_RESULTS } from './memories.ts'
import { content, DEFAULT_RESULTS, limit, QUERY_CHARACTERS, replaces, storedEvent, tags } from './primitives.ts'

const strict = { convert: false } as const
const iso = Joi.string().isoDate()
const id = agentName
const uuid = Joi.string().required().example('0197a4c2-6716-7487-82cc-0738495a6b7c')
const memoryId = uuid.max(64).description('Id of the memory.')
const compactionId = uuid.max(64).description('Id of the compaction.')
const storedContent = Joi.string().allow('').required().example('The reader prefers large print.')
const memory = Joi.object({
	id: uuid,
	content: storedContent,
	tags: Joi.array().items(Joi.string().allow('')).required().example(['reader']),
	created_at: iso.required(),
	replaces: Joi.array().items(Joi.string()).description('Older memories that it replaces; absent if none.'),
	replaced_by: Joi.string().description('The newer memory that replaces it; absent if none.'),
}).id('Memory')
const found = Joi.object({
	id: uuid,
	content: storedContent,
	similarity: Joi.number().min(0).max(1).required().description('Cosine of query and content.').example(0.83),
	created_at: iso.required(),
}).id('MemorySearchResult')
const page = Joi.object({
	memories: Joi.array().items(memory).required(),
	next_cursor: Joi.string().allow(null).required().description('For the next page; null at the end.'),
}).id('MemoryPage')
const compaction = Joi.object({
	compaction_id: uuid,
	status: Joi.valid('running', 'completed', 'failed', 'undone').required(),
	started_at: iso.required(),
	ended_at: iso.allow(null).required(),
	memories_before: Joi.number().integer().required().example(212),
	memories_after: Joi.number().integer().allow(null).required(),
	merged: Joi.number().integer().required().description('Groups of memories that were merged into one each.'),
	error: Joi.string().allow(null).required(),
}).id('Compaction')
const compactionStarted = Joi.object({
	agent_id: Joi.string().required().example('ada'),
	status: Joi.valid('compaction_started').required(),
	memories_before: Joi.number().integer().required().example(212),
	compaction_id: uuid,
})
const mayConflict = { openapi: { errors: [409] } }
const agentOnly = Joi.object({ id })

interface Params {
	id: string
}

export function routes(server: Server, ctx: Context<MemorySettings>, memories: LongTermMemory): void {
	const agentOf = (name: string): Promise<AgentRef> => ctx.use('agents').get(name)

	server.route<{ Params: Params; Query: { q: string; limit?: number } }>({
		method: 'GET',
		path: '/v1/agents/{id}/memory/search',
		options: {
			id: 'searchMemory',
			description: 'Search long-term memory',
			notes:
				'By meaning and by keywords, best first. The memories stored directly before and after a match also count a little.',
			tags: ['api', 'memory'],
			auth: scoped('agents:read'),
			validate: {
				params: agentOnly,
				query: Joi.object({
					q: Joi.string()
						.min(1)
						.max(QUERY_CHARACTERS)
						.required()
						.description('What to search for.')
						.example('which print does the reader like?'),
					limit: limit.default(DEFAULT_RESULTS),
				}),
			},
			plugins: { openapi: { errors: [503] } },
			response: { status: { 200: Joi.array().items(found) } },
		},
		handler: async ({ params, query }) => {
			const results = await memories.search(await agentOf(params.id), query.q, query.limit ?? DEFAULT_RESULTS)
			return results.map(({ id, content, similarity, created_at }) => ({ id, content, similarity, created_at }))
		},
	})
	server.route<{ Params: Params; Query: { limit?: number; cursor?: string } }>({
		method: 'GET',
		path: '/v1/agents/{id}/memory',
		options: {
			id: 'listMemories',
			description: 'List long-term memory, newest first',
			tags: ['api', 'memory'],
			auth: scoped('agents:read'),
			validate: {
				params: agentOnly,
				query: Joi.object({
					limit: limit.default(50).description('Maximum number; default 50. A page of long memories contains fewer.'),
					cursor: Joi.string().max(64).description('The next_cursor of the previous page.'),
				}),
			},
			response: { status: { 200: page } },
		},
		handler: async ({ params, query }) => {
			const { limit: most = 50, cursor } = query
			return memories.list(await agentOf(params.id), { limit: most, ...(cursor !== undefined && { cursor }) })
		},
	})
	server.route<{ Params: Params; Payload: { content: string; tags?: string[]; replaces?: string[] } }>({
		method: 'POST',
		path: '/v1/agents/{id}/memory',
		options: {
			id: 'storeMemory',
			description: 'Store a memory',
			notes:
				'Like the tool `memory.store`. Storing the same content again returns the existing memory. A text that differs from an older one in a single number replaces that memory.',
			tags: ['api', 'memory'],
			auth: scoped('agents:write'),
			validate: {
				params: agentOnly,
				payload: Joi.object({ content: content.required(), tags, replaces })
					.required()
					.prefs(strict)
					.example({ content: 'The reader prefers large print.', tags: ['reader'] }),
			},
			response: { status: { 201: memory } },
			plugins: mayConflict,
		},
		handler: async ({ params, payload }, h) => {
			const stored = await memories.store(await agentOf(params.id), payload)
			await ctx.emit(storedEvent(stored), params.id)
			return h.response(stored).code(201)
		},
	})
	server.route<{ Params: Params & { memory_id: string } }>({
		method: 'DELETE',
		path: '/v1/agents/{id}/memory/{memory_id}',
		options: {
			id: 'forgetMemory',
			description: 'Forget a memory',
			notes: 'Permanently: the originals from which a compaction made it are deleted as well.',
			tags: ['api', 'memory'],
			auth: scoped('agents:write'),
			validate: { params: Joi.object({ id, memory_id: memoryId }) },
		},
		handler: async ({ params }, h) => {
			const { memory_id } = params
			if (!(await memories.forget(await agentOf(params.id), memory_id)))
				throw new Fault('not_found', `agent "${params.id}" has no memory "${memory_id}"`, {
					hint: { route: 'GET /v1/agents/{id}/memory', params: { id: params.id }, does: 'lists them' },
				})
			await ctx.emit({ event_type: 'memory.forgotten', payload: { memory_id } }, params.id)
			return h.response().code(204)
		},
	})
	server.route<{ Params: Params }>({
		method: 'POST',
		path: '/v1/agents/{id}/memory/compact',
		options: {
			id: 'compactMemory',
			description: 'Compact long-term memory',
			notes:
				'Merges duplicates and lets the model summarize related older memories, in the background. The originals are kept, so a compaction can be undone.',
			tags: ['api', 'memory'],
			auth: scoped('agents:write'),
			validate: { params: agentOnly },
			response: { status: { 200: compactionStarted } },
			plugins: mayConflict,
		},
		handler: async ({ params }) => {
			const { compaction_id, memories_before } = await memories.compact(await agentOf(params.id))
			return { agent_id: params.id, status: 'compaction_started' as const, memories_before, compaction_id }
		},
	})
	server.route<{ Params: Params }>({
		method: 'GET',
		path: '/v1/agents/{id}/memory/compactions',
		options: {
			id: 'listCompactions',
			description: 'List compactions of long-term memory, newest first',
			tags: ['api', 'memory'],
			auth: scoped('agents:read'),
			validate: { params: agentOnly },
			response: { status: { 200: Joi.array().items(compaction).max(MAX_RESULTS) } },
		},
		handler: async ({ params }) => memories.compactions(await agentOf(params.id)),
	})
	server.route<{ Params: Params & { compaction_id: string } }>({
		method: 'POST',
		path: '/v1/agents/{id}/memory/compactions/{compaction_id}/undo',
		options: {
			id: 'undoCompaction',
			description: 'Undo a compaction of long-term memory',
			notes:
				'Restores the originals and removes the memories that were made from them. Only the latest completed compaction can be undone.',
			tags: ['api', 'memory'],
			auth: scoped('agents:write'),
			validate: { params: Joi.object({ id, compaction_id: compactionId }) },
			response: { status: { 200: compaction } },
			plugins: mayConflict,
		},
		handler: async ({ params }) => memories.undo(await agentOf(params.id), params.compaction_id),
	})
}
