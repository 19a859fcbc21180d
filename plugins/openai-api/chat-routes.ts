import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import type { Context } from '../../core/plugin.ts'
import { bodyUsed } from '../../core/http/body-budget.ts'
import { agentOf } from './agents.ts'
import { runRoute } from './route-options.ts'
import { withAttachments } from './attachments.ts'
import { chunks, chunksOf, completion, completionOf } from './chat.ts'
import type { OpenAiApi, OpenAiSettings } from './contract.ts'
import { callerOf, namedConversation, newConversation } from './conversations.ts'
import type { Caller } from './conversations.ts'
import type { AgentRequest } from './exchange.ts'
import { effort, modelSettings, model, refused, shared, toolFields, verbosity } from './fields.ts'
import type { Sampling } from './fields.ts'
import { jsonOf, responseFormat } from './form.ts'
import type { JsonFields, ToolChoice } from './form.ts'
import { inputsOf } from './inputs.ts'
import { messages, messagesOf } from './messages.ts'
import type { ChatInput } from './messages.ts'
import { withOpenCalls } from './progress.ts'
import { streamAnswer, waitForAnswer } from './serve.ts'
import { functionsIn, setIgnoredHeader, tools } from './tools.ts'
import type { ClientTool, HostedTool } from './tools.ts'
import { turnOf } from './turn.ts'

interface FunctionTool {
	type: 'function'
	function: ClientTool
}

interface ChatRequest extends Sampling {
	model: string
	messages: ChatInput[]
	stream?: boolean | null
	stream_options?: { include_usage?: boolean } | null
	max_tokens?: number | null
	max_completion_tokens?: number | null
	tools?: (FunctionTool | HostedTool)[] | null
	client_metadata?: unknown
	tool_choice?: ToolChoice
	response_format?: { type: string; json_schema?: JsonFields; schema?: Record<string, unknown> } | null
	parallel_tool_calls?: boolean | null
	user?: string | null
}

const penalty = Joi.number().min(-2).max(2).allow(null).description('Passed to the model.')
const limit = Joi.number().integer().min(1).allow(null)
const { top_logprobs, ...fields } = shared
const payload = Joi.object({
	model: model.required(),
	messages: messages.required(),
	...fields,
	stream_options: Joi.object({ include_usage: Joi.boolean(), include_obfuscation: Joi.boolean() }).allow(null),
	max_completion_tokens: limit.description("Maximum tokens of each model answer. The agent's limit applies, too."),
	max_tokens: limit.description('The older name of max_completion_tokens.'),
	frequency_penalty: penalty,
	presence_penalty: penalty,
	seed: Joi.number().integer().allow(null).description('Passed to the model.'),
	stop: Joi.alternatives(Joi.string(), Joi.array().items(Joi.string()).max(4))
		.allow(null)
		.description('Passed to the model.'),
	reasoning_effort: effort.allow(null),
	verbosity: verbosity.allow(null),
	tools: tools({ function: Joi.object(toolFields).required() }),
	store: Joi.boolean().allow(null).description('Accepted, without effect: runs are stored in any case.'),
	prediction: Joi.object().unknown().allow(null).description('Accepted, without effect.'),
	n: refused('must be 1: an agent gives one answer', [1]),
	logprobs: refused('must be false: an agent returns no probabilities', [false]),
	top_logprobs,
	logit_bias: refused('is not supported', [{}]),
	response_format: responseFormat,
	modalities: refused('must be ["text"]: an agent answers in text', [['text']]),
	audio: refused('is not supported: an agent answers in text'),
	functions: refused('is no longer supported; use tools', [[]]),
	function_call: refused('is no longer supported; use tools'),
	web_search_options: refused('is not supported; give the agent a skill or an MCP server for it'),
})
	.example({ model: 'svc/ada', messages: [{ role: 'user', content: 'What can you do for me?' }] })
	.required()
	.prefs({ convert: false })
	.id('OpenAiChatRequest')

const notes = `The model is an agent. Each request is an ordinary run with its events, limits and tools. The run's id is in the
header \`x-svc-run-id\`. If the client disconnects, the run is stopped. Without \`user\` and \`x-svc-conversation\`, the messages of
the request are the only history of the run. With one of them, the gateway stores the conversation, and uses only the user's latest
message of the request. With \`stream: true\`, the response is Server-Sent Events, each a \`chat.completion.chunk\`, and \`[DONE]\`.`

export function chatRoutes(server: Server, ctx: Context<OpenAiSettings>, service: OpenAiApi): void {
	server.route<{ Payload: ChatRequest }>({
		method: 'POST',
		path: '/v1/chat/completions',
		options: {
			id: 'createChatCompletion',
			description: "Ask an agent with OpenAI's chat completions",
			notes,
			...runRoute({ payload, whole: completion, streamed: chunks }),
		},
		handler: async (request, h) => {
			const { payload: body, auth, raw } = request
			const client = { open: service.open, credentials: auth.credentials, response: raw.res }
			const agentRequest = await agentRequestOf(ctx, body, callerOf(ctx.config, request, body.user))
			setIgnoredHeader(raw.res, body)
			bodyUsed(request)
			if (body.stream === true) {
				await streamAnswer(ctx, client, agentRequest, chunksOf(body.model, body.stream_options?.include_usage ?? false))
				return h.abandon
			}
			const { run_id, answer } = await waitForAnswer(ctx, client, agentRequest)
			return completionOf(run_id, body.model, answer)
		},
	})
}

async function agentRequestOf(ctx: Context<OpenAiSettings>, body: ChatRequest, caller: Caller): Promise<AgentRequest> {
	const { owner, name } = caller
	const agent = await agentOf(ctx, caller, body.model)
	const named = name === undefined ? undefined : await namedConversation(ctx, agent, owner, name)
	const input = await withOpenCalls(ctx, agent, named, messagesOf(body.messages))
	// Frees the memory: messages may be large, and a stream may be open for long.
	body.messages = []
	const isNamed = named !== undefined
	const turn = turnOf(
		await withAttachments(ctx, agent, input, { field: 'messages', isKept: isNamed }),
		'messages',
		isNamed,
	)
	const { response_format: format } = body
	const start = await inputsOf(ctx, { agent, owner, isNamed }, turn, body, {
		functions: functionsIn<FunctionTool>(body.tools).map((tool) => tool.function),
		json: jsonOf(format && { schema: format.schema, ...format.json_schema, type: format.type }),
		model: modelSettings(body, body.max_completion_tokens, body.max_tokens),
	})
	return { agent, keepsQuestions: isNamed, start: { ...start, conversation: named ?? newConversation('once', owner) } }
}
