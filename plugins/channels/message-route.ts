import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import type { Context } from '../../core/plugin.ts'
import { agentName } from '../shared/agent-name.ts'
import { conversationId } from '../shared/conversation-id.ts'
import { scoped } from '../shared/scopes.ts'
import type { Channels } from './contract.ts'

/** Limit of a message, in characters. */
const CONTENT_LIMIT = 64 * 1024
const aConversation = Joi.string().required().example('channel:0197a4c2-6f0d-7b5e-8f0a-3d0a4c2b1e90')

/** `POST /v1/agents/{name}/conversations/{id}/messages`: sends a message to a chat as the agent. */
export function messageRoute(server: Server, ctx: Pick<Context, 'use'>, channels: Channels): void {
	server.route<{ Params: { name: string; id: string }; Payload: { content: string } }>({
		method: 'POST',
		path: '/v1/agents/{name}/conversations/{id}/messages',
		options: {
			id: 'sendMessage',
			description: 'Send a message to a chat as its agent, without a run',
			notes: [
				"Responds once the message is durable. The message is then sent once, even after a crash, after earlier messages that wait for that chat. It becomes part of the chat's current conversation, as a message of the agent.",
				'`message.undelivered` reports a message that could not be sent within 24 hours, or that the platform refused.',
			],
			tags: ['api', 'channels'],
			auth: scoped('runs:write'),
			plugins: { openapi: { errors: [404, 409, 429] } },
			validate: {
				params: Joi.object({
					name: agentName,
					id: aConversation
						.concat(conversationId)
						.description(
							'A conversation of the chat, which may be an earlier one. For a chat without messages: `channel:` and the `binding_id`.',
						),
				}),
				headers: Joi.object({
					'idempotency-key': Joi.string()
						.min(1)
						.max(255)
						.description('A repeated key within 24 hours returns the same message and sends nothing.'),
				}).unknown(),
				payload: Joi.object({
					content: Joi.string()
						.max(CONTENT_LIMIT)
						.pattern(/\S/)
						.message('{#label} must have more than white space')
						.required()
						.description('Markdown, at most 65,536 characters.')
						.example('The backup of tonight is complete.'),
				})
					.required()
					.prefs({ convert: false }),
			},
			response: {
				status: {
					200: Joi.object({
						message_id: Joi.string().required().example('0197a4c2-70aa-7c11-9d3e-5b7f0c1d2e3f'),
						conversation: aConversation.description('The current conversation of the chat.'),
						channel_id: Joi.string().required().example('0197a4c2-6b1c-7a4f-9c55-0d8d2f3e4a5b'),
						chat_id: Joi.string().required().description('The chat on its platform.').example('42'),
					}).id('SentMessage'),
				},
			},
		},
		handler: async (request) => {
			const { name, id } = request.params
			const key = request.headers['idempotency-key'] as string | undefined
			return channels.say(await ctx.use('agents').get(name), id, request.payload.content, key)
		},
	})
}
