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
import { Fault, isFault } from '../../core/errors.ts'
import type { FaultCode } from '../../core/errors.ts'
import type { McpContext } from './call.ts'
import { callOf } from './calling.ts'
import type { Extra, SessionContext } from './calling.ts'
import { complete } from './completion.ts'
import { getPrompt, listPrompts } from './prompts.ts'
import { listResources, readResource, resourceTemplates } from './resources.ts'
import { callTool, listTools } from './tools.ts'

/** The scope for resources, prompts and completion, and the scope for starting runs. */
const READS = 'agents:read'
const RUNS = 'runs:write'
/** The protocol's code for an unknown resource, and JSON-RPC's code for other errors of a server. */
const RESOURCE_NOT_FOUND = -32002
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
		const rpcError = toRpcError(error)
		rpcError.message = clearance.text(rpcError.message)
		throw rpcError
	} finally {
		if (extra.signal.aborted && !closing.aborted) forget(extra.requestId)
	}
}

/** Converts an error to an error of the protocol. Unexpected errors are reported without details, which may be internals. */
function toRpcError(error: unknown): Error {
	if (!(error instanceof Fault)) return rpcError(ErrorCode.InternalError, 'internal', 'internal error')
	const { code, said: message } = error
	if (code === 'not_found') return rpcError(RESOURCE_NOT_FOUND, code, message)
	if (code === 'invalid_request' || code === 'tool_unknown') return rpcError(ErrorCode.InvalidParams, code, message)
	return rpcError(SERVER_ERROR, code, message)
}

/** The SDK's own error class would add the code to the message. */
function rpcError(rpcCode: number, code: FaultCode, message: string): Error {
	return Object.assign(new Error(message), { code: rpcCode, data: { code } })
}
