import type { Server } from '@hapi/hapi'
import Joi from 'joi'
import { scoped } from '../../core/http/routes.ts'
import type { Context } from '../../core/plugin.ts'
import { specOf } from '../../core/runs/toolbox.ts'
import { composeContext } from './context.ts'
import { systemFor } from './preamble.ts'

const item = Joi.object({
	kind: Joi.valid('instructions', 'tools', 'earlier', 'turn', 'prompt').required(),
	run_id: Joi.string().description('Of a turn.'),
	shown: Joi.valid('whole', 'stubs').description(
		'Of a turn: `stubs` where results of tools and long texts are shortened.',
	),
	tokens: Joi.number().required(),
})
const context = Joi.object({
	conversation: Joi.string().required(),
	provider: Joi.string().required(),
	model: Joi.string().required(),
	budget: Joi.number().required().description('Tokens that a request may take.'),
	tokens: Joi.number().required().description('Of all items, by the estimate for the model.'),
	items: Joi.array().items(item).required().description('In the order of the request.'),
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
	})

/** What the next request of a conversation holds. Nothing is changed by looking. */
export function contextRoute(server: Server, ctx: Context): void {
	server.route<{ Params: { name: string; id: string } }>({
		method: 'GET',
		path: '/v1/agents/{name}/conversations/{id}/context',
		options: {
			id: 'getContext',
			description: 'What of a conversation the next request to the model holds, with estimated tokens',
			notes:
				'What is left out is kept: the agent finds it with `conversation.search`, and reads it with `conversation.read`.',
			tags: ['api', 'runs'],
			auth: scoped('agents:read'),
			validate: {
				params: Joi.object({
					name: Joi.string().max(64).required().description('Name of the agent.').example('ada'),
					id: Joi.string()
						.pattern(/^[\x21-\x7e]{1,400}$/, '1 to 400 printable ASCII characters')
						.required()
						.description('As the `conversation` of a run says.')
						.example('0197a4c2-6938-7609-84ee-295a6b7c8d9e'),
				}),
			},
			response: { status: { 200: context } },
		},
		handler: async (request) => {
			const { name, id: conversation } = request.params
			const agent = await ctx.use('agents').get(name)
			const { orders } = await ctx.use('models').choose(agent.config)
			const tools = await ctx.toolbox.list(agent)
			const { fitted, budget } = await composeContext(ctx, {
				run: { agent_uid: agent.uid, conversation },
				config: agent.config,
				models: orders,
				system: await systemFor(ctx, {}, agent, tools),
				tools: tools.map(specOf),
				prompt: '',
			})
			const { provider = '', model = '' } = orders[0] ?? {}
			return { conversation, provider, model, budget, tokens: fitted.tokens, items: fitted.items }
		},
	})
}
