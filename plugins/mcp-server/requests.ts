/** Handles the requests that the client of a session may send. */
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
	CallToolRequestSchema,
	CompleteRequestSchema,
	ErrorCode,
	GetPromptRequestSchema,
	ListPromptsRequestSchema,
	ListResourcesRequestSchema,
	ListResourceTemplatesRequestSchema,
	ListToolsRequestSchema,
	ReadResourceRequestSchema,
	SetLevelRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { Result, ServerCapabilities } from '@modelcontextprotocol/sdk/types.js'
import { isFault } from '../../core/errors.ts'
import type { Fault, FaultCode } from '../../core/errors.ts'
import { callOf } from './call.ts'
import type { Extra, McpContext, SessionContext } from './call.ts'
import { complete } from './completion.ts'
import { getPrompt, listPrompts } from './prompts.ts'
import { listResources, readResource, resourceTemplates } from './resources.ts'
import { callTool, listTools } from './tools.ts'

/** The scope for resources, prompts and completion, and the scope for starting runs. */
const READS = 'agents:read'
const RUNS = 'runs:write'
/** JSON-RPC's codes, and that of the protocol for an unknown resource. */
const rpcCodes: { readonly [Code in FaultCode]?: number } = {
	not_found: -32002,
	invalid_request: ErrorCode.InvalidParams,
	tool_unknown: ErrorCode.InvalidParams,
	internal: ErrorCode.InternalError,
}
/** JSON-RPC's code for other errors of a server. */
const SERVER_ERROR = -32000

/** The capabilities of a session with these scopes. */
export function capabilitiesFor(
	{ find }: Pick<McpContext, 'find'>,
	isAllowed: SessionContext['isAllowed'],
): ServerCapabilities {
	return {
		tools: {},
		...(isAllowed(READS) && { resources: {}, completions: {} }),
		...(isAllowed(READS) && find('skills') && { prompts: { listChanged: true } }),
		// Log messages concern the runs of calls.
		...(isAllowed(RUNS) && { logging: {} }),
	}
}

export function handleRequests(server: Server, session: SessionContext): void {
	const { ctx, isAllowed, beginCall } = session
	const on: Server['setRequestHandler'] = (schema, work) =>
		server.setRequestHandler(schema, (request, extra) => answer(session, extra, async () => work(request, extra)))
	on(ListToolsRequestSchema, () => ({ tools: listTools(ctx, isAllowed) }))
	on(CallToolRequestSchema, ({ params }, extra) => {
		const end = beginCall()
		const call = callOf(session, extra, server.getClientCapabilities())
		return callTool(ctx, isAllowed, params.name, params.arguments ?? {}, call).finally(end)
	})
	const { prompts, logging } = capabilitiesFor(ctx, isAllowed)
	if (logging)
		on(SetLevelRequestSchema, ({ params }) => {
			session.log.level = params.level
			return {}
		})
	if (!isAllowed(READS)) return
	const mayRun = isAllowed(RUNS)
	on(CompleteRequestSchema, ({ params }) => complete(ctx, mayRun, params))
	if (prompts) {
		on(ListPromptsRequestSchema, ({ params }) => listPrompts(ctx, mayRun, params?.cursor))
		on(GetPromptRequestSchema, ({ params }) => getPrompt(ctx, mayRun, params.name, params.arguments))
	}
	on(ListResourcesRequestSchema, ({ params }) => listResources(ctx, params?.cursor))
	on(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates }))
	on(ReadResourceRequestSchema, ({ params }) => readResource(ctx, params.uri))
}

async function answer(
	{ ctx, clearance, closing, forget }: SessionContext,
	extra: Extra,
	work: () => Promise<Result>,
): Promise<Result> {
	const { log } = ctx
	try {
		return clearance.data(await work())
	} catch (error) {
		if (!isFault(error)) log.error({ err: error }, 'a request of an MCP client failed')
		// Unexpected errors are reported without details, which may be internals.
		const { code, said }: Pick<Fault, 'code' | 'said'> = isFault(error)
			? error
			: { code: 'internal', said: 'internal error' }
		// The SDK's own error class would add the code to the message.
		throw Object.assign(new Error(clearance.text(said)), { code: rpcCodes[code] ?? SERVER_ERROR, data: { code } })
	} finally {
		if (extra.signal.aborted && !closing.aborted) forget(extra.requestId)
	}
}
