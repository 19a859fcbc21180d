import type { Request, Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { shownFault, toWire } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import { bodyUsed } from '../../core/http/body-budget.ts'
import { reaches } from '../shared/agent-limit.ts'
import { scoped } from '../shared/scopes.ts'
import type { OpenAiApi, OpenAiSettings } from './contract.ts'
import { runRoute, commonOptions } from './route-options.ts'
import { callerOf, ownerOf } from './conversations.ts'
import { textFormat } from './form.ts'
import { input } from './items.ts'
import { itemPage, itemsOf, itemsQuery } from './input-items.ts'
import type { ItemsQuery } from './input-items.ts'
import { effort, model, refused, shared, toolFields, verbosity } from './fields.ts'
import { respond } from './respond.ts'
import type { ResponseRequest } from './respond.ts'
import { response, responseEvents, viewOf } from './response.ts'
import { eventsOf, seconds } from './response-events.ts'
import { streamAnswer, waitForAnswer } from './serve.ts'
import { setIgnoredHeader, tools } from './tools.ts'
import { deleteResponse, missing, readResponse, writeEnd } from './stored.ts'
import type { ResponseEnd, StoredResponse } from './stored.ts'

/** Additions to items that this API never returns: calls of a provider's tools, reasoning, images. */
const withoutEffect: ReadonlySet<unknown> = new Set([
	'code_interpreter_call.outputs',
	'computer_call_output.output.image_url',
	'file_search_call.results',
	'message.input_image.image_url',
	'reasoning.encrypted_content',
	'web_search_call.action.sources',
	'web_search_call.results',
])

/** Client libraries send some of these by default, such as the sources of a web search. */
const include = Joi.any()
	.custom((value: unknown, helpers) =>
		value === null || [value].flat().every((name) => withoutEffect.has(name))
			? value
			: helpers.message({ custom: '{#label} contains data that agents do not return; leave it out' }),
	)
	.description('No effect: the output has none of the items concerned. Log probabilities are refused.')

const payload = Joi.object({
	model: model.required(),
	input: input.required(),
	instructions: Joi.string().allow('', null).description('Added to the persona, for this run only.'),
	previous_response_id: Joi.string()
		.max(128)
		.allow('', null)
		.description('The stored response that this one continues.'),
	store: Joi.boolean()
		.allow(null)
		.description('Stores the response, so that later ones can continue it. Default true.'),
	...shared,
	max_output_tokens: Joi.number()
		.integer()
		.min(1)
		.allow(null)
		.description("Maximum tokens of each model answer. The agent's limit applies, too."),
	reasoning: Joi.object({
		effort: effort.allow(null),
		summary: Joi.string().allow(null).description('No effect: reasoning is not returned.'),
		generate_summary: Joi.string().allow(null),
	})
		.unknown()
		.allow(null),
	text: Joi.object({
		format: textFormat,
		verbosity: verbosity.allow(null),
	}).allow(null),
	tools: tools(toolFields),
	truncation: Joi.valid('auto', 'disabled', null).description('No effect: the newest 50 earlier responses are used.'),
	stream_options: Joi.object({ include_obfuscation: Joi.boolean() }).allow(null),
	include,
	background: refused('must be false; POST /v1/agents/{name}/runs starts a run in the background', [false]),
	conversation: refused('is not supported; use previous_response_id, user or the header x-svc-conversation'),
	context_management: refused('is not supported', [[]]),
	max_tool_calls: refused("is not supported; the agent's config.limits.steps limits its work"),
	prompt: refused('is not supported; use instructions and input'),
})
	.example({ model: 'svc/ada', input: 'What can you do for me?' })
	.required()
	.prefs({ convert: false })
	.id('OpenAiResponseRequest')

const notes = `The model is an agent. Each request is an ordinary run with its events, limits and tools. The run's id is in the
header \`x-svc-run-id\`. If the client disconnects, the run is stopped. With \`stream: true\`, the response is Server-Sent Events
from \`response.created\` to \`response.completed\`, \`response.incomplete\` or \`response.failed\`.`

const kept = Joi.string().required().example('resp_0197a4c25d1e7c3a9b6f2f1d8e4a7c05')
const params = Joi.object({ id: kept.max(128).description('Id of a stored response.') })
type Id = { Params: { id: string } }

export function responseRoutes(server: Server, ctx: Context<OpenAiSettings>, service: OpenAiApi): void {
	const read = async ({ params: { id }, auth }: Pick<Request<Id>, 'params' | 'auth'>): Promise<StoredResponse> => {
		const record = await readResponse(ctx, id, ownerOf(auth.credentials))
		if (!record || !reaches(auth.credentials, record.agent.name)) throw missing(id, 'response_id')
		return record
	}

	server.route<{ Payload: ResponseRequest }>({
		method: 'POST',
		path: '/v1/responses',
		options: {
			id: 'createResponse',
			description: "Ask an agent with OpenAI's responses",
			notes,
			...runRoute({ payload, whole: response, streamed: responseEvents }),
		},
		handler: async (request, h) => {
			const { payload: body, auth, raw } = request
			const client = { open: service.open, credentials: auth.credentials, response: raw.res }
			const { agentRequest, record, key } = await respond(ctx, body, callerOf(ctx.config, request, body.user))
			bodyUsed(request)
			setIgnoredHeader(raw.res, body)
			const ended = async (end: ResponseEnd): Promise<void> => {
				if (key) await writeEnd(ctx, key, end)
			}
			if (body.stream === true) {
				await streamAnswer(ctx, client, agentRequest, eventsOf(record, ended))
				return h.abandon
			}
			try {
				const { answer } = await waitForAnswer(ctx, client, agentRequest)
				const end = { at: seconds(), answer }
				await ended(end)
				return viewOf({ ...record, end })
			} catch (error) {
				await ended({ at: seconds(), error: toWire(shownFault(error)) })
				throw error
			}
		},
	})
	server.route<Id>({
		method: 'GET',
		path: '/v1/responses/{id}',
		options: {
			id: 'getResponse',
			description: 'Read a stored response',
			notes:
				'A response is stored as long as its run (`runs.retention_days`). Only the token that created it can read it.',
			...commonOptions,
			auth: scoped('agents:read'),
			validate: {
				params,
				query: Joi.object({
					stream: Joi.valid(false).description('A stored response cannot be streamed.'),
					include,
					'include[]': include.description("As OpenAI's clients write `include`."),
				}),
			},
			response: { status: { 200: response } },
		},
		handler: async (request) => viewOf(await read(request)),
	})
	server.route<Id & { Query: ItemsQuery }>({
		method: 'GET',
		path: '/v1/responses/{id}/input_items',
		options: {
			id: 'listResponseInput',
			description: 'List the input of a stored response',
			notes: 'The new items of its request, without instructions and system messages.',
			...commonOptions,
			auth: scoped('agents:read'),
			validate: { params, query: itemsQuery },
			response: { status: { 200: itemPage } },
		},
		handler: async (request) => itemsOf(await read(request), request.query),
	})
	server.route<Id>({
		method: 'POST',
		path: '/v1/responses/{id}/cancel',
		options: {
			id: 'cancelResponse',
			description: 'Stop the run of a stored response',
			notes: 'A response that has ended stays unchanged. The request that waits for a cancelled response fails.',
			...commonOptions,
			auth: scoped('runs:write'),
			validate: { params, payload: Joi.object({}).allow(null).example({}) },
			response: { status: { 200: response } },
		},
		handler: async (request) => {
			const record = await read(request)
			if (record.end) return viewOf(record)
			await ctx.use('runs').stop(record.run_id)
			return viewOf(await read(request))
		},
	})
	server.route<Id>({
		method: 'DELETE',
		path: '/v1/responses/{id}',
		options: {
			id: 'deleteResponse',
			description: 'Delete a stored response',
			notes: 'Later responses can no longer continue it. Its run and events are kept.',
			...commonOptions,
			auth: scoped('runs:write'),
			validate: { params },
			response: {
				status: {
					200: Joi.object({
						id: kept,
						object: Joi.valid('response').required(),
						deleted: Joi.valid(true).required(),
					}),
				},
			},
		},
		handler: async (request) => {
			const record = await read(request)
			await deleteResponse(ctx, record)
			return { id: record.id, object: 'response', deleted: true }
		},
	})
}
