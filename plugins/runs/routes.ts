import type { Server } from '@hapi/hapi'
import type { CustomValidator, State } from 'joi'
import { Joi } from '../../core/util/lazy-joi.ts'
import type { Context } from '../../core/plugin.ts'
import { agentName } from '../shared/agent-name.ts'
import { conversationId } from '../shared/conversation-id.ts'
import { scoped } from '../shared/scopes.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type { AttachmentSource } from '../attachments/contract.ts'
import { approvalRoutes } from './approval-routes.ts'
import { textOf } from './questions.ts'
import { stepsRoute } from './steps-route.ts'
import { conversationRoutes } from './conversation-routes.ts'
import { aQuestion, aRun, asked, attachmentsGiven, emptyBody, message, run, runId, statuses, view } from './run-view.ts'
import { CONVERSATION_NAME, namedConversation } from './named-conversation.ts'
import { keyOfCaller } from './start.ts'
import { eventFrame, startAndStream, wantsStream } from './start-stream.ts'
import type { Answer, RunRecord, Runs, RunSettings, RunStatus, StartRequest } from './contract.ts'

const PROMPT_LIMIT_BYTES = 100 * 1024
const ANSWER_LIMIT_BYTES = 100 * 1024

const strict = { convert: false } as const
const iso = Joi.string().isoDate()
const filter = {
	limit: Joi.number().integer().min(1).max(500).default(50).description('How many runs one page has at most.'),
	status: Joi.valid(...statuses).description('Only runs with this status.'),
}
const runPage = Joi.object({
	runs: Joi.array().items(run).required().description('Newest first.'),
	next_cursor: Joi.string()
		.allow(null)
		.required()
		.description(
			'For the next page; null if there are no older runs. A page with fewer runs than `limit` may have a cursor too.',
		)
		.example('0197a4c2-5d1e-7c3a-9b6f-2f1d8e4a7c05'),
}).id('RunPage')
interface NewRun {
	prompt?: string
	attachments?: AttachmentSource[]
	conversation?: string
}

const done = (status: string) =>
	Joi.object({ agent: Joi.string().required().example('ada'), status: Joi.valid(status).required() })
const started = Joi.object({ run_id: aRun }).concat(done('started'))
const question = Joi.object({ ...asked, run_id: aRun, asked_at: iso.required() }).id('Question')

export function routes(server: Server, ctx: Context<RunSettings>, runs: Runs): void {
	const agentOf = (agent: string): Promise<AgentRecord> => ctx.use('agents').get(agent)
	const shown = async (record: RunRecord): Promise<Record<string, unknown>> => view(record, await runs.asked(record))

	server.route<{ Params: { name: string }; Payload: NewRun }>({
		method: 'POST',
		path: '/v1/agents/{name}/runs',
		options: {
			id: 'startRun',
			description: 'Start a run',
			notes: [
				'The run continues in the background; follow it at GET /v1/events/stream?run_id=…',
				'With `Accept: text/event-stream`, and without `application/json` in it, the answer is the stream of the run: all its events and the pieces of its answers (`model.stream`), as at GET /v1/events/stream, to the end of the run. The first event names the run, and so does the header `x-svc-run-id`. This needs the scope `events:read`, too. The run continues if its client disconnects. To resume the stream, use `Last-Event-ID` at the address in the header `Location`, or here with the same `Idempotency-Key`.',
				'Runs of one conversation execute one after another, runs of different conversations at the same time. A run that waits for an answer delays only its own conversation.',
				'With `attachments` the prompt may be absent. The body may have 1 MiB; POST /v1/agents/{name}/blobs takes larger files, unencoded.',
			],
			tags: ['api', 'runs'],
			auth: scoped('runs:write'),
			plugins: {
				openapi: { answers: { 200: { 'text/event-stream': Joi.string().example(eventFrame) } }, errors: [409] },
			},
			validate: {
				params: Joi.object({ name: agentName }),
				headers: Joi.object({
					'idempotency-key': Joi.string()
						.min(1)
						.max(255)
						.description('Within 24 hours, the same key returns the same run.'),
					'last-event-id': Joi.string()
						.max(200)
						.description(
							'With `Accept: text/event-stream` and the `Idempotency-Key` of an earlier request: continues the stream of its run after this position.',
						),
				}).unknown(),
				payload: Joi.object({
					prompt: Joi.string()
						.min(1)
						.max(PROMPT_LIMIT_BYTES, 'utf8')
						.description('At most 100 KiB. Required, unless there are attachments.')
						.example('Which books are due today?'),
					attachments: attachmentsGiven,
					conversation: Joi.string()
						.pattern(CONVERSATION_NAME, '1 to 200 printable characters')
						.description(
							'A name that the caller chooses for a conversation of this agent. The first run that names it begins the conversation. GET …/conversations lists it as `api:` and the name (or a digest, for a name with spaces or characters outside ASCII). Absent: the current session.',
						)
						.example('holiday-plans'),
				})
					.custom(saysSomething)
					.required()
					.prefs(strict),
			},
			response: { status: { 200: started } },
		},
		handler: async (request, h) => {
			const key = request.headers['idempotency-key'] as string | undefined
			const agent = await agentOf(request.params.name)
			const { prompt = '', attachments: given = [], conversation } = request.payload
			const attachments = given.length > 0 ? await ctx.use('attachments').take(agent, given) : []
			const wanted: StartRequest = {
				prompt,
				attachments,
				trigger: 'api',
				...(conversation !== undefined && { conversation: namedConversation(conversation) }),
				...(key !== undefined && { idempotency_key: keyOfCaller(key) }),
			}
			if (wantsStream(request)) {
				await startAndStream(ctx, runs, agent, wanted, request)
				return h.abandon
			}
			const { run_id } = await runs.start(agent, wanted)
			return { run_id, agent: agent.name, status: 'started' }
		},
	})
	server.route<{ Params: { name: string }; Query: { limit: number; before?: string; status?: RunStatus } }>({
		method: 'GET',
		path: '/v1/agents/{name}/runs',
		options: {
			id: 'listRuns',
			description: 'List the runs of an agent, newest first',
			notes: 'A page may be shorter than its limit if runs are large; continue with `before` until a page is empty.',
			tags: ['api', 'runs'],
			auth: scoped('agents:read'),
			validate: {
				params: Joi.object({ name: agentName }),
				query: Joi.object({
					limit: filter.limit,
					before: Joi.string().max(64).description('Continue after this run_id.'),
					status: filter.status,
				}),
			},
			response: { status: { 200: Joi.array().items(run) } },
		},
		handler: async (request) =>
			Promise.all((await runs.list(await agentOf(request.params.name), request.query)).map(shown)),
	})
	server.route<{ Query: { limit: number; cursor?: string; status?: RunStatus; id?: string } }>({
		method: 'GET',
		path: '/v1/runs',
		options: {
			id: 'listAllRuns',
			description: 'List the runs of all agents, newest first',
			tags: ['api', 'runs'],
			auth: scoped('agents:read'),
			plugins: { auth: { agents: 'checked' } },
			validate: {
				query: Joi.object({
					limit: filter.limit,
					cursor: Joi.string().max(64).description('`next_cursor` of the previous page.'),
					status: filter.status,
					id: Joi.string()
						.pattern(/^[0-9a-f-]{4,36}$/, 'at least 4 characters of an id')
						.description('Only runs whose id begins or ends with this.'),
				}),
			},
			response: { status: { 200: runPage } },
		},
		handler: async (request) => {
			const page = await runs.visibleTo(request.auth.credentials).listAll(request.query)
			return { runs: await Promise.all(page.runs.map(shown)), next_cursor: page.next_cursor }
		},
	})
	server.route<{ Params: { run_id: string } }>({
		method: 'GET',
		path: '/v1/runs/{run_id}',
		options: {
			id: 'getRun',
			description: 'Read a run',
			tags: ['api', 'runs'],
			auth: scoped('agents:read'),
			plugins: { auth: { agents: 'checked' } },
			validate: { params: Joi.object({ run_id: runId }) },
			response: { status: { 200: run } },
		},
		handler: async ({ auth, params }) => shown(await runs.visibleTo(auth.credentials).get(params.run_id)),
	})
	conversationRoutes(server, ctx, runs, shown)
	approvalRoutes(server, ctx, runs)
	stepsRoute(server, ctx, runs)
	server.route<{ Params: { run_id: string } }>({
		method: 'POST',
		path: '/v1/runs/{run_id}/cancel',
		options: {
			id: 'cancelRun',
			description: 'Cancel one run, and the sub-agents that it started',
			tags: ['api', 'runs'],
			auth: scoped('runs:write'),
			plugins: { auth: { agents: 'checked' }, openapi: { errors: [409] } },
			validate: { params: Joi.object({ run_id: runId }), payload: emptyBody },
			response: { status: { 200: run } },
		},
		handler: async ({ auth, params }) => shown(await runs.visibleTo(auth.credentials).cancel(params.run_id)),
	})
	server.route<{ Params: { run_id: string } }>({
		method: 'POST',
		path: '/v1/runs/{run_id}/retry',
		options: {
			id: 'retryRun',
			description: 'Start a failed or stopped run again',
			notes:
				'Returns a new run in the same conversation, with the same prompt and attachments; its answer goes where that of the first run was meant to go. It works on the prompt from the beginning, and its model sees how the earlier run ended. Only runs of the API, webhooks and heartbeats can be started again. Within 24 hours a run is started again once: if the new run has failed, too, it is started again. One request follows 20 such runs; then the answer is 409 and names the last one.',
			tags: ['api', 'runs'],
			auth: scoped('runs:write'),
			plugins: { auth: { agents: 'checked' }, openapi: { errors: [409] } },
			validate: { params: Joi.object({ run_id: runId }), payload: emptyBody },
			response: { status: { 200: run } },
		},
		handler: async ({ auth, params }) => shown(await runs.visibleTo(auth.credentials).retry(params.run_id)),
	})
	server.route<{ Params: { name: string } }>({
		method: 'POST',
		path: '/v1/agents/{name}/stop',
		options: {
			id: 'stopAgent',
			description: 'Cancel every run of the agent',
			notes: 'When it returns, all of them have ended.',
			tags: ['api', 'agents'],
			auth: scoped('runs:write'),
			validate: { params: Joi.object({ name: agentName }), payload: emptyBody },
			response: { status: { 200: done('stopped') } },
		},
		handler: async (request) => {
			const agent = await agentOf(request.params.name)
			await runs.stopAgent(agent)
			return { agent: agent.name, status: 'stopped' }
		},
	})
	server.route<{ Params: { name: string } }>({
		method: 'POST',
		path: '/v1/agents/{name}/reset',
		options: {
			id: 'resetAgent',
			description: 'Begin a new session, and forget all short-term notes',
			notes: 'The history is empty again, and the short-term notes of all conversations of the agent are deleted.',
			tags: ['api', 'agents'],
			auth: scoped('agents:write'),
			validate: { params: Joi.object({ name: agentName }), payload: emptyBody },
			response: { status: { 200: done('reset') } },
		},
		handler: async (request) => {
			const agent = await agentOf(request.params.name)
			await runs.reset(agent)
			return { agent: agent.name, status: 'reset' }
		},
	})
	server.route<{ Params: { name: string }; Query: { conversation?: string } }>({
		method: 'GET',
		path: '/v1/agents/{name}/history',
		options: {
			id: 'getHistory',
			description: 'Messages of the current session, or of another conversation, oldest first',
			notes: 'The newest 1,000 turns, at most 8 MiB. The list is empty for a conversation that does not exist.',
			tags: ['api', 'agents'],
			auth: scoped('agents:read'),
			validate: {
				params: Joi.object({ name: agentName }),
				query: Joi.object({
					conversation: conversationId.description('The `conversation` of a run, such as that of a chat or webhook.'),
				}),
			},
			response: { status: { 200: Joi.array().items(message) } },
		},
		handler: async (request) => runs.history(await agentOf(request.params.name), request.query.conversation),
	})
	server.route<{ Params: { name: string } }>({
		method: 'GET',
		path: '/v1/agents/{name}/questions',
		options: {
			id: 'listQuestions',
			description: 'Questions of the agent that wait for an answer, oldest first',
			tags: ['api', 'runs'],
			auth: scoped('agents:read'),
			validate: { params: Joi.object({ name: agentName }) },
			response: { status: { 200: Joi.array().items(question) } },
		},
		handler: async (request) =>
			(await runs.questions(await agentOf(request.params.name))).map((asked) => ({
				...textOf(asked),
				run_id: asked.run_id,
				asked_at: asked.asked_at,
			})),
	})
	server.route<{ Params: { name: string; question_id: string }; Payload: Answer }>({
		method: 'POST',
		path: '/v1/agents/{name}/ask-responses/{question_id}',
		options: {
			id: 'answerQuestion',
			description: 'Answer a question; its run continues',
			notes:
				'An approval is answered by `approve`, `approve_always` (also for later calls of the tool with the same arguments), `edit` with `arguments`, or `refuse` with an optional `reason`. Edited arguments are checked against the schema of the tool; if they do not fit, the answer is 400 and the question stays open.',
			tags: ['api', 'runs'],
			auth: scoped('runs:write'),
			plugins: { openapi: { errors: [409] } },
			validate: {
				params: Joi.object({ name: agentName, question_id: aQuestion.max(64).description('Id of the question.') }),
				payload: Joi.object({
					answer: Joi.string().allow('').max(ANSWER_LIMIT_BYTES, 'utf8').required().example('yes'),
					arguments: Joi.object()
						.unknown()
						.description('With `edit`: all arguments of the call, in place of those that the model wrote.'),
					reason: Joi.string().max(2_000).description('With `refuse`: the reason, which the model gets.'),
				})
					.required()
					.prefs(strict),
			},
			response: {
				status: { 200: Joi.object({ question_id: aQuestion, status: Joi.valid('answered').required() }) },
			},
		},
		handler: async ({ params: { name, question_id }, payload }) => {
			await runs.answer(await agentOf(name), question_id, payload)
			return { question_id, status: 'answered' }
		},
	})
}

const saysSomething: CustomValidator<{ prompt?: string; attachments?: unknown[] }> = (value, helpers) => {
	if (value.prompt !== undefined || value.attachments?.length) return value
	const path = [...(helpers.state.path ?? []), 'prompt']
	return helpers.error('any.required', { label: 'prompt' }, { ...helpers.state, path } as State)
}
