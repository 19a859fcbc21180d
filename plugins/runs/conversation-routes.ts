import type { Server } from '@hapi/hapi'
import Joi from 'joi'
import { scoped } from '../../core/http/routes.ts'
import type { Context } from '../../core/plugin.ts'
import { composeContext } from './context.ts'
import type { Runs } from './contract.ts'
import { mustExist } from './conversation.ts'
import { nextRequest } from './next-request.ts'
import { readSummary } from './summary-record.ts'

const item = Joi.object({
	kind: Joi.valid('instructions', 'tools', 'earlier', 'turn', 'prompt').required(),
	run_id: Joi.string().description('Of a turn.'),
	shown: Joi.valid('whole', 'stubs').description(
		'Of a turn: `whole`, or `stubs` if results of tools and long texts are shortened.',
	),
	tokens: Joi.number().required(),
})
const context = Joi.object({
	conversation: Joi.string().required(),
	provider: Joi.string().required(),
	model: Joi.string().required(),
	budget: Joi.number().required().description('Maximum tokens of a request.'),
	tokens: Joi.number().required().description('Estimated tokens of all items.'),
	items: Joi.array().items(item).required().description('In the order of the request.'),
	summary: Joi.object({
		since: Joi.string().required().description('The first turn that it covers.'),
		through: Joi.string().required().description('The last one.'),
		turns: Joi.number().required().description('How many it covers.'),
		text: Joi.string().required(),
		made_at: Joi.string().isoDate().required(),
	})
		.allow(null)
		.required()
		.description('The newest summary of older turns; requests get it from the next cut on.'),
})
	.id('ConversationContext')
	.example({
		conversation: '0197a4c2-6938-7609-84ee-295a6b7c8d9e',
		provider: 'openai',
		model: 'gpt-4o-mini',
		budget: 100_000,
		tokens: 3_160,
		items: [
			{ kind: 'instructions', tokens: 420 },
			{ kind: 'tools', tokens: 2_300 },
			{ kind: 'turn', run_id: '0197a4c2-5d1e-7c3a-9b6f-2f1d8e4a7c05', shown: 'whole', tokens: 430 },
			{ kind: 'prompt', tokens: 10 },
		],
		summary: null,
	})
const params = Joi.object({
	name: Joi.string().max(64).required().description('Name of the agent.').example('ada'),
	id: Joi.string()
		.pattern(/^[\x21-\x7e]{1,400}$/, '1 to 400 printable ASCII characters')
		.required()
		.description('The `conversation` of a run.')
		.example('0197a4c2-6938-7609-84ee-295a6b7c8d9e'),
})
const compaction = Joi.object({
	conversation: Joi.string().required().example('0197a4c2-6938-7609-84ee-295a6b7c8d9e'),
	status: Joi.valid('compaction_started').required(),
	turns: Joi.number().required().description('Turns that the summary gets in addition.').example(12),
})

/** Conversations: what the next request would contain, summarizing, deleting. */
export function conversationRoutes(server: Server, ctx: Context, runs: Pick<Runs, 'compact' | 'forget'>): void {
	server.route<{ Params: { name: string; id: string } }>({
		method: 'GET',
		path: '/v1/agents/{name}/conversations/{id}/context',
		options: {
			id: 'getContext',
			description: 'Show what the next request to the model would contain, with estimated tokens',
			notes:
				'Nothing is deleted: the agent finds omitted turns with `conversation.search`, and reads them with `conversation.read`.',
			tags: ['api', 'runs'],
			auth: scoped('agents:read'),
			validate: { params },
			response: { status: { 200: context } },
		},
		handler: async (request) => {
			const { name, id: conversation } = request.params
			const agent = await ctx.use('agents').get(name)
			await mustExist(ctx.store, agent, conversation)
			const asked = await nextRequest(ctx, agent, conversation)
			const { fitted, budget } = await composeContext(ctx, asked)
			const { provider = '', model = '' } = asked.models[0] ?? {}
			const summary = (await readSummary(ctx.store, agent.uid, conversation)) ?? null
			return { conversation, provider, model, budget, tokens: fitted.tokens, items: fitted.items, summary }
		},
	})
	server.route<{ Params: { name: string; id: string } }>({
		method: 'POST',
		path: '/v1/agents/{name}/conversations/{id}/compact',
		options: {
			id: 'compactConversation',
			description: 'Summarize a conversation now',
			notes:
				'In the background: `context.summarized` or `context.summary_failed` follows. All turns but the newest two are summarized; from the next run on, the model gets the summary in their place. Nothing is deleted.',
			tags: ['api', 'runs'],
			auth: scoped('agents:write'),
			plugins: { openapi: { errors: [409] } },
			validate: { params, payload: Joi.object({}).allow(null).example({}) },
			response: { status: { 200: compaction } },
		},
		handler: async (request) => {
			const { name, id: conversation } = request.params
			const agent = await ctx.use('agents').get(name)
			await mustExist(ctx.store, agent, conversation)
			return { conversation, status: 'compaction_started', turns: await runs.compact(agent, conversation) }
		},
	})
	server.route<{ Params: { name: string; id: string } }>({
		method: 'DELETE',
		path: '/v1/agents/{name}/conversations/{id}',
		options: {
			id: 'deleteConversation',
			description: 'Delete a conversation',
			notes:
				'Stops its unfinished runs, and deletes its runs with their messages, notes, questions, summary and sub-agents. Events and memories stay. If it is the current session, a new one begins.',
			tags: ['api', 'runs'],
			auth: scoped('agents:write'),
			validate: { params },
			response: { emptyStatusCode: 204 },
		},
		handler: async (request, h) => {
			const { name, id } = request.params
			await runs.forget(await ctx.use('agents').get(name), id)
			return h.response().code(204)
		},
	})
}
