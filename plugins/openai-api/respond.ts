/** Converts the body of POST /v1/responses to a request to the agent, and to the record of the response. */
import { Fault } from '../../core/errors.ts'
import { newId } from '../../core/util/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { Key } from '../../core/store/ports.ts'
import { agentOf } from './agents.ts'
import { withAttachments } from './attachments.ts'
import type { StoredMessage } from './contract.ts'
import { namedConversation, newConversation, sharedName } from './conversations.ts'
import type { Caller } from './conversations.ts'
import type { AgentRequest } from './exchange.ts'
import { modelSettings } from './fields.ts'
import type { Sampling } from './fields.ts'
import { jsonOf } from './form.ts'
import type { JsonFields, ToolChoice } from './form.ts'
import { inputsOf } from './inputs.ts'
import { messagesOf } from './items.ts'
import type { InputItem } from './items.ts'
import { withOpenCalls } from './progress.ts'
import { resolveReferences } from './references.ts'
import { seconds } from './response-events.ts'
import { chainOf, missing, newPlace, readResponse } from './stored.ts'
import type { StoredResponse } from './stored.ts'
import { functionsIn } from './tools.ts'
import type { ClientTool, HostedTool } from './tools.ts'
import { turnOf } from './turn.ts'

type FunctionTool = { type: 'function'; strict?: boolean | null } & ClientTool

export interface ResponseRequest extends Pick<Sampling, 'temperature' | 'top_p'> {
	model: string
	input: string | InputItem[]
	instructions?: string | null
	previous_response_id?: string | null
	store?: boolean | null
	stream?: boolean | null
	max_output_tokens?: number | null
	reasoning?: { effort?: string | null } | null
	text?: { format?: ({ type: string } & JsonFields) | null; verbosity?: string | null } | null
	tools?: (FunctionTool | HostedTool)[] | null
	client_metadata?: unknown
	tool_choice?: ToolChoice
	parallel_tool_calls?: boolean | null
	truncation?: string | null
	metadata?: Record<string, string> | null
	user?: string | null
}

/**
 * `record`: has no `run_id` until the run starts. `key`: of the stored record; absent with `store: false`. Throws `not_found`,
 * `invalid_request`, or `conflict` while the previous response is in progress.
 */
export async function respond(
	ctx: Context,
	body: ResponseRequest,
	caller: Caller,
): Promise<{ agentRequest: AgentRequest; record: StoredResponse; key?: Key }> {
	const { owner, name } = caller
	const agent = await agentOf(ctx, caller, body.model)
	const previous = body.previous_response_id
		? await previousOf(ctx, agent, owner, body.previous_response_id)
		: undefined
	const named = name === undefined ? undefined : await namedConversation(ctx, agent, owner, name)
	const messages = await withOpenCalls(
		ctx,
		agent,
		previous ? undefined : named,
		messagesOf(await resolveReferences(ctx, agent, owner, body.input)),
	)
	// Frees the memory: items may be large, and a stream may be open for long.
	body.input = ''
	const input = await withAttachments(ctx, agent, messages, { field: 'input', isKept: named !== undefined })
	const instructions: StoredMessage = { role: 'system', content: body.instructions ?? '' }
	const isNamed = previous?.named ?? named !== undefined
	const chain = previous ? await chainOf(ctx, previous, owner) : []
	const turn = turnOf([instructions, ...chain, ...input], 'input', isNamed)
	const start = await inputsOf(ctx, { agent, owner, isNamed }, turn, body, {
		functions: functionsIn<FunctionTool>(body.tools),
		json: jsonOf(body.text?.format),
		model: modelSettings(
			{
				temperature: body.temperature,
				top_p: body.top_p,
				reasoning_effort: body.reasoning?.effort,
				verbosity: body.text?.verbosity,
			},
			body.max_output_tokens,
		),
	})
	const isKept = body.store !== false
	const conversation = previous
		? await conversationAfter(ctx, agent, owner, previous)
		: (named ?? newConversation(isKept ? 'responses' : 'once', owner))
	const { id, key } = newPlace(agent, newId())
	const record: StoredResponse = {
		id,
		agent: { name: agent.name, uid: agent.uid },
		owner,
		run_id: '',
		conversation,
		named: isNamed,
		previous_response_id: previous?.id ?? null,
		created_at: seconds(),
		echo: echoOf(body),
		input: input.filter((message) => message.role !== 'system'),
	}
	const agentRequest: AgentRequest = {
		agent,
		keepsQuestions: isKept || isNamed,
		start: { ...start, conversation },
		also: async (run_id) => {
			record.run_id = run_id
			return isKept ? [{ key, value: { ...record }, expect: null }] : []
		},
	}
	return { agentRequest, record, ...(isKept && { key }) }
}

async function previousOf(ctx: Context, agent: AgentRef, owner: string, id: string): Promise<StoredResponse> {
	const previous = await readResponse(ctx, id, owner)
	if (previous?.agent.uid !== agent.uid) throw missing(id, 'previous_response_id')
	return previous
}

/** The previous response's conversation if the response is its latest, otherwise a new one that branches off. */
async function conversationAfter(
	ctx: Context,
	agent: AgentRef,
	owner: string,
	previous: StoredResponse,
): Promise<string> {
	const { conversation, run_id, named } = previous
	const shared = named ? sharedName(conversation) : undefined
	if (shared !== undefined) return namedConversation(ctx, agent, owner, shared)
	const active = named ? undefined : await ctx.use('runs').active(agent, conversation)
	if (!active) return conversation
	if (active.run_id !== run_id) return newConversation('responses', owner)
	if (await ctx.use('runs').asked(active)) return conversation
	throw new Fault('conflict', `the response "${previous.id}" is still in progress; wait for it to end`)
}

/** The fields of the request that a response repeats, with their defaults. */
function echoOf(body: ResponseRequest): Record<string, unknown> {
	const { temperature = null, top_p = null, max_output_tokens = null, instructions = null } = body
	return {
		model: body.model,
		instructions,
		max_output_tokens,
		max_tool_calls: null,
		metadata: body.metadata ?? {},
		parallel_tool_calls: body.parallel_tool_calls ?? true,
		reasoning: { effort: body.reasoning?.effort ?? null, summary: null },
		service_tier: 'default',
		store: body.store !== false,
		temperature,
		text: {
			format: body.text?.format ?? { type: 'text' },
			...(body.text?.verbosity && { verbosity: body.text.verbosity }),
		},
		tool_choice: body.tool_choice ?? 'auto',
		tools: functionsIn<FunctionTool>(body.tools).map((tool) => ({
			description: null,
			parameters: null,
			strict: null,
			...tool,
		})),
		top_logprobs: 0,
		top_p,
		truncation: body.truncation ?? 'disabled',
		user: body.user ?? null,
	}
}
