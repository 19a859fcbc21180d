import type { Request, Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault, statusOf } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import { agentName } from '../shared/agent-name.ts'
import { conversationId } from '../shared/conversation-id.ts'
import { scoped } from '../shared/scopes.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type { WaitingRequest } from '../auth/contract.ts'
import type { ChatSettings, LegacyChat } from './contract.ts'
import { errorBody } from './errors.ts'
import { begin } from './exchange.ts'
import { context, contextText, message } from './message.ts'
import type { ChatMessage } from './message.ts'
import { stream } from './stream.ts'

const HISTORY_DEFAULT = 50
const HISTORY_LIMIT = 1_000

const success = Joi.valid(true).required()
const params = Joi.object({ name: agentName })
const aSession = Joi.string().required().example('0197a4c2-6938-7609-84ee-295a6b7c8d9e')
const failure = Joi.object({
	success: Joi.valid(false).required(),
	error: Joi.string().required().description('What to change.'),
})
	.id('ChatError')
	.example({ success: false, error: 'there is no agent "ada"; POST /v1/agents creates one' })
const answered = Joi.object({
	success,
	response: Joi.string()
		.allow('')
		.required()
		.description('The answer of the agent, or its question.')
		.example('Three books are due today.'),
	metadata: Joi.object({
		model: Joi.string().allow(null).required(),
		tokens_used: Joi.number().integer().required().example(220),
		processing_time_ms: Joi.number().integer().required().example(1840),
		skills_invoked: Joi.array()
			.items(Joi.string())
			.required()
			.description('Skills that were called, each once; other tools are not among them.')
			.example(['business-days']),
		question_id: Joi.string().description('The response is a question; the next message of the session answers it.'),
	}).required(),
}).id('ChatAnswer')
const conversation = Joi.object({
	session_id: aSession,
	messages: Joi.array()
		.items(
			Joi.object({
				role: Joi.valid('user', 'assistant').required(),
				content: Joi.string().allow('').required().example('Which books are due today?'),
				timestamp: Joi.string().isoDate().required(),
			}),
		)
		.required(),
}).id('Conversation')

const streamNotes =
	'Server-Sent Events with names: `token` {content}, `invoke_start` {skill, args}, `invoke_end` {result}, then `done` {tokens_used, processing_time_ms, question_id?} or `error` {error, response?}. The tokens add up to the reply.'
const frames = Joi.string().example(
	'id: 0197a4c2-5d1e-7c3a-9b6f-2f1d8e4a7c05\n\nevent: token\ndata: {"content":"Three books are due today."}\n\nevent: done\ndata: {"tokens_used":220,"processing_time_ms":1840}\n\n',
)
const events = { 'text/event-stream': frames }
const plain = { openapi: { failure } }

type Name = { name: string }

export function routes(server: Server, ctx: Context<ChatSettings>, chat: LegacyChat): void {
	const clientOf = ({ auth, raw }: Pick<Request, 'auth' | 'raw'>): WaitingRequest => ({
		open: chat.waiting,
		credentials: auth.credentials,
		response: raw.res,
	})
	const agentOf = (name: string): Promise<AgentRecord> => ctx.use('agents').get(name)

	server.route<{ Params: Name; Payload: ChatMessage & { stream: boolean } }>({
		method: 'POST',
		path: '/api/agents/{name}/chat',
		options: {
			id: 'chat',
			description: 'Say something to an agent and wait for its reply',
			notes: `With \`stream: true\` as GET /api/agents/{name}/chat/stream. ${streamNotes}`,
			tags: ['api', 'chat'],
			auth: scoped('runs:write'),
			// A failed run may have any of these statuses.
			plugins: { openapi: { answers: { 200: events }, errors: [409, 502, 504], failure } },
			validate: {
				params,
				payload: Joi.object({
					message,
					stream: Joi.boolean().default(false).description('Answer as a stream of events.'),
					context,
				})
					.required()
					.prefs({ convert: false })
					.example({ message: 'Which books are due today?', context: { source: 'website', user_id: '42' } }),
			},
			response: { status: { 200: answered } },
		},
		handler: async (request, h) => {
			const { stream: wantsStream, ...said } = request.payload
			const agent = await agentOf(request.params.name)
			const client = clientOf(request)
			if (wantsStream) {
				await stream(ctx, client, agent, said)
				return h.abandon
			}
			const reply = await ctx
				.use('auth')
				.answerWhole(client, async (signal) => (await begin(ctx, agent, said, signal)).reply)
			if (reply.status === 'answered') return { success: true, response: reply.content, metadata: reply.metadata }
			return h.response(errorBody(reply.message)).code(statusOf(reply.code))
		},
	})
	server.route<{ Params: Name; Query: ChatMessage }>({
		method: 'GET',
		path: '/api/agents/{name}/chat/stream',
		options: {
			id: 'streamChat',
			description: 'Say something to an agent and follow its reply',
			notes: streamNotes,
			tags: ['api', 'chat'],
			auth: scoped('runs:write'),
			plugins: { openapi: { answers: { 200: events, 204: {} }, errors: [409, 503], failure } },
			validate: { params, query: Joi.object({ message, context: contextText }) },
		},
		handler: async (request, h) => {
			const agent = await agentOf(request.params.name)
			// Neither sends a message: a HEAD request, and an EventSource that reconnects automatically.
			if (request.method === 'head') return h.response('').code(200).type('text/event-stream')
			if (request.headers['last-event-id']) return h.response().code(204)
			await stream(ctx, clientOf(request), agent, request.query)
			return h.abandon
		},
	})
	server.route<{ Params: Name }>({
		method: 'GET',
		path: '/api/agents/{name}/chat/ws',
		options: {
			id: 'openChatSocket',
			description: 'Talk to an agent over a WebSocket',
			notes: [
				'The client sends text frames, each one JSON object `{"message": "Which books are due today?", "context": {…}}`; one after another is answered, and 8 may wait.',
				'The server sends `{type: "token", content}` for each piece of the reply, `{type: "invoke_start", content: "", skill, args}` and `{type: "invoke_end", content: "", result}` around each tool, then `{type: "done", content, tokens_used, processing_time_ms, question_id?}` with the whole reply, or `{type: "error", content}` with what went wrong.',
				'The server sends pings and closes the connection of a client that does not answer. A request without the headers of an upgrade is answered with 400.',
			],
			tags: ['api', 'chat'],
			auth: scoped('runs:write'),
			plugins: { openapi: { answers: { 101: {} }, errors: [503], failure } },
			validate: { params },
		},
		handler: () => {
			throw new Fault(
				'invalid_request',
				'this is a WebSocket; send the headers Connection: Upgrade, Upgrade: websocket',
			)
		},
	})
	server.route<{ Params: Name }>({
		method: 'POST',
		path: '/api/agents/{name}/session/new',
		options: {
			id: 'newChatSession',
			description: 'Begin a new session',
			notes: 'The same sessions as those of the main API. The earlier one stays readable by its id.',
			tags: ['api', 'chat'],
			auth: scoped('agents:write'),
			plugins: plain,
			validate: { params, payload: Joi.object({}).allow(null).example({}) },
			response: {
				status: {
					200: Joi.object({
						success,
						session_id: aSession,
						message: Joi.string().required().example('a new session has begun'),
					}),
				},
			},
		},
		handler: async (request) => {
			const session_id = await ctx.use('runs').newSession(await agentOf(request.params.name))
			return { success: true, session_id, message: 'a new session has begun' }
		},
	})
	server.route<{ Params: Name; Query: { limit: number; session?: string } }>({
		method: 'GET',
		path: '/api/agents/{name}/conversation',
		options: {
			id: 'getConversation',
			description: 'List the messages of a session, oldest first',
			tags: ['api', 'chat'],
			auth: scoped('agents:read'),
			plugins: plain,
			validate: {
				params,
				query: Joi.object({
					limit: Joi.number()
						.integer()
						.min(1)
						.max(HISTORY_LIMIT)
						.default(HISTORY_DEFAULT)
						.description('Maximum number of messages; the newest are returned.'),
					session: conversationId.description('Id of an earlier session. Default the current one.'),
				}),
			},
			response: { status: { 200: conversation } },
		},
		handler: async (request) => {
			const runs = ctx.use('runs')
			const agent = await agentOf(request.params.name)
			const { limit, session } = request.query
			const current = await runs.session(agent)
			const session_id = session ?? current
			const messages = await runs.history(agent, session_id, limit) // `limit` turns have at least as many messages
			if (messages.length === 0 && session_id !== current) {
				const known = 'leave session out for the current one'
				throw new Fault('not_found', `agent "${agent.name}" has no session "${session_id}" with messages; ${known}`)
			}
			return { session_id, messages: messages.slice(-limit) }
		},
	})
	server.route<{ Params: Name }>({
		method: 'DELETE',
		path: '/api/agents/{name}/conversation',
		options: {
			id: 'clearConversation',
			description: 'Delete the conversation',
			notes:
				'A new session begins. The messages of the old one can no longer be read by any route: its runs that have not ended are stopped, and all are deleted with their questions, notes and sub-agents. Events stay in the audit log for as long as it is kept.',
			tags: ['api', 'chat'],
			auth: scoped('agents:write'),
			plugins: plain,
			validate: { params },
			response: {
				status: {
					200: Joi.object({
						success,
						message: Joi.string().required().example('the conversation is empty; a new session has begun'),
					}),
				},
			},
		},
		handler: async (request) => {
			await ctx.use('runs').clear(await agentOf(request.params.name))
			return { success: true, message: 'the conversation is empty; a new session has begun' }
		},
	})
}
