import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { agentName } from '../shared/agent-name.ts'
import { conversationId } from '../shared/conversation-id.ts'
import { scoped } from '../shared/scopes.ts'
import type { Context } from '../../core/plugin.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type { RunRecord, Runs } from './contract.ts'
import { mustExist } from './conversation.ts'
import { listConversations, readConversation } from './conversations.ts'
import type { Conversation } from './conversations.ts'
import { aRun, emptyBody, message, run, statuses } from './run-view.ts'

const limit = Joi.number().integer().min(1).max(500).default(50)
const A_RUN_ID = '[0-9a-f-]{36}'
const ID = '0197a4c2-6938-7609-84ee-295a6b7c8d9e'
const about = {
	conversation: Joi.string()
		.required()
		.description('Its id: the `conversation` of its runs, such as `chat:…`.')
		.example(ID),
	is_session: Joi.boolean().required().description("It is the agent's current session."),
	created_at: Joi.string()
		.isoDate()
		.allow(null)
		.required()
		.description('When the oldest kept run was created; null if the conversation has no run yet.')
		.example('2026-11-02T09:30:00.000Z'),
}
const nextCursor = (about: string) => Joi.string().allow(null).required().description(about).example(null)
const conversationPage = Joi.object({
	conversations: Joi.array()
		.items(Joi.object({ ...about, newest_run: run.required() }).id('AgentConversation'))
		.required()
		.description('By their newest run, newest first.'),
	next_cursor: nextCursor(
		'For the next page; null after the last one. A page with fewer conversations than `limit` may have a cursor too.',
	),
}).id('AgentConversationPage')
const conversationTurns = Joi.object({
	...about,
	newest_run: run.allow(null).required().description('Null if it has no run yet.'),
	turns: Joi.array()
		.items(
			Joi.object({
				run_id: aRun,
				status: Joi.valid(...statuses).required(),
				trigger: Joi.string().required().example('api'),
				messages: Joi.array()
					.items(message)
					.required()
					.description(
						'Oldest first: the prompt, unless this turn continues the previous one with the same prompt; then the answer, if any.',
					),
			}).id('Turn'),
		)
		.required()
		.description('Newest first.'),
	next_cursor: nextCursor(
		'For the next page; null if there are no older turns. A page with fewer turns than `limit` may have a cursor too.',
	),
}).id('AgentConversationTurns')
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
	name: agentName,
	id: conversationId.required().description('The `conversation` of a run.').example(ID),
})
const compaction = Joi.object({
	conversation: Joi.string().required().example('0197a4c2-6938-7609-84ee-295a6b7c8d9e'),
	status: Joi.valid('compaction_started').required(),
	turns: Joi.number().required().description('Turns that the summary gets in addition.').example(12),
})

/** Conversations: listing, reading, what the next request would contain, summarizing, deleting. `shown`: a run as the API shows it. */
export function conversationRoutes(
	server: Server,
	ctx: Context,
	runs: Pick<Runs, 'compact' | 'context' | 'forget'>,
	shown: (run: RunRecord) => Promise<Record<string, unknown>>,
): void {
	const view = async ({ newest_run, ...rest }: Conversation): Promise<Record<string, unknown>> => ({
		...rest,
		newest_run: newest_run && (await shown(newest_run)),
	})

	/** Throws `not_found`, also for a conversation that the agent does not have. */
	const agentWith = async ({ name, id }: { name: string; id: string }): Promise<AgentRecord> => {
		const agent = await ctx.use('agents').get(name)
		await mustExist(ctx.store, agent, id)
		return agent
	}

	server.route<{ Params: { name: string }; Query: { limit: number; cursor?: string } }>({
		method: 'GET',
		path: '/v1/agents/{name}/conversations',
		options: {
			id: 'listConversations',
			description: 'List the conversations of an agent, those with the newest runs first',
			notes:
				'Lists conversations of every kind: sessions, chats, webhooks, heartbeats, sub-agents, the OpenAI-compatible API, the MCP server. Internal conversations, in which the gateway makes summaries or compacts memory, are omitted. A page reads at most 5,000 runs and has at most about 8 MiB, so it may be shorter than its limit; continue until `next_cursor` is null. All pages use the order at the time of the first page.',
			tags: ['api', 'runs'],
			auth: scoped('agents:read'),
			validate: {
				params: Joi.object({ name: agentName }),
				query: Joi.object({
					limit: limit.description('How many conversations one page has at most.'),
					cursor: Joi.string()
						.pattern(new RegExp(`^${A_RUN_ID}\\.${A_RUN_ID}$`), 'the next_cursor of a page')
						.description('`next_cursor` of the previous page.'),
				}),
			},
			response: { status: { 200: conversationPage } },
		},
		handler: async ({ params, query }) => {
			const page = await listConversations(ctx.store, await ctx.use('agents').get(params.name), query)
			return { conversations: await Promise.all(page.conversations.map(view)), next_cursor: page.next_cursor }
		},
	})
	server.route<{ Params: { name: string; id: string }; Query: { limit: number; cursor?: string } }>({
		method: 'GET',
		path: '/v1/agents/{name}/conversations/{id}',
		options: {
			id: 'readConversation',
			description: 'Read a conversation: its newest run, and a page of its turns, newest first',
			notes: 'A page has at most about 8 MiB. Turns that wait in the queue are included.',
			tags: ['api', 'runs'],
			auth: scoped('agents:read'),
			validate: {
				params,
				query: Joi.object({
					limit: limit.description('How many turns one page has at most.'),
					cursor: Joi.string()
						.pattern(new RegExp(`^${A_RUN_ID}$`), 'the next_cursor of a page')
						.description('`next_cursor` of the previous page.'),
				}),
			},
			response: { status: { 200: conversationTurns } },
		},
		handler: async (request) => {
			const { name, id } = request.params
			const { limit, cursor } = request.query
			const page = { limit, ...(cursor !== undefined && { before: cursor }) }
			const agent = await ctx.use('agents').get(name)
			const { turns, next_cursor, ...found } = await readConversation(ctx.store, agent, id, page)
			return {
				...(await view(found)),
				turns: turns.map(({ run: { run_id, status, trigger }, messages }) => ({ run_id, status, trigger, messages })),
				next_cursor,
			}
		},
	})
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
		handler: async ({ params }) => ({ ...(await runs.context(await agentWith(params), params.id)) }),
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
			validate: { params, payload: emptyBody },
			response: { status: { 200: compaction } },
		},
		handler: async ({ params }) => {
			const turns = await runs.compact(await agentWith(params), params.id)
			return { conversation: params.id, status: 'compaction_started', turns }
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
		},
		handler: async ({ params }, h) => {
			await runs.forget(await ctx.use('agents').get(params.name), params.id)
			return h.response().code(204)
		},
	})
}
