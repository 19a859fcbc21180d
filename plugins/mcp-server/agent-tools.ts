/** Tools that list agents, and search their memory. */
import { Joi } from '../../core/util/lazy-joi.ts'
import type { ServedTool } from './call.ts'
import { page } from './pages.ts'
import { excerpt } from '../../core/util/excerpt.ts'

const LIST_LIMIT = 100
const PERSONA_CHARACTERS = 300
const QUERY_CHARACTERS = 4_000
const RESULTS_DEFAULT = 10
const RESULTS_LIMIT = 50
const iso = Joi.string().isoDate()

export const agentArgument = Joi.string()
	.min(1)
	.max(64)
	.required()
	.description('Name of the agent, as list_agents returns it.')

const listAgents: ServedTool = {
	name: 'list_agents',
	title: 'List agents',
	description:
		'Lists the agents of the gateway by name, each with the beginning of its persona, which describes its purpose.',
	scope: 'agents:read',
	input: Joi.object({
		limit: Joi.number().integer().min(1).max(LIST_LIMIT).default(LIST_LIMIT),
		after: Joi.string().max(64).description('Continue after this name: the `next` of the previous page.'),
	}),
	output: Joi.object({
		agents: Joi.array()
			.items(
				Joi.object({
					name: Joi.string().required(),
					persona: Joi.string().allow('', null).required(),
					created_at: iso.required(),
				}),
			)
			.required(),
		next: Joi.string().allow(null).required().description('For the next page; null at the end.'),
	}),
	annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
	async run(ctx, { limit, after }: { limit: number; after?: string }) {
		const { items, next } = await page(ctx.use('agents').list(), limit, after)
		const agents = items.map(({ name, persona, created_at }) => ({
			name,
			persona: persona === null ? null : excerpt(persona, PERSONA_CHARACTERS),
			created_at,
		}))
		return { data: { agents, next } }
	},
}

const searchMemory: ServedTool = {
	name: 'search_memory',
	title: "Search an agent's memory",
	description: 'Searches the long-term memory of an agent by meaning and by keywords, best matches first.',
	scope: 'agents:read',
	service: 'memory',
	input: Joi.object({
		agent: agentArgument,
		query: Joi.string().min(1).max(QUERY_CHARACTERS).required().description('What you want to know.'),
		limit: Joi.number().integer().min(1).max(RESULTS_LIMIT).default(RESULTS_DEFAULT),
	}),
	output: Joi.object({
		memories: Joi.array()
			.items(
				Joi.object({
					id: Joi.string().required(),
					content: Joi.string().allow('').required(),
					similarity: Joi.number().min(0).max(1).required().description('Cosine of query and content.'),
					tags: Joi.array().items(Joi.string().allow('')).required(),
					created_at: iso.required(),
				}),
			)
			.required(),
	}),
	annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
	async run(ctx, { agent, query, limit }: { agent: string; query: string; limit: number }) {
		const found = await ctx.use('memory').search(await ctx.use('agents').get(agent), query, limit)
		const memories = found.map(({ id, content, similarity, tags, created_at }) => ({
			id,
			content,
			similarity,
			tags,
			created_at,
		}))
		return { data: { memories } }
	},
}

export const agentTools: readonly ServedTool[] = [listAgents, searchMemory]
