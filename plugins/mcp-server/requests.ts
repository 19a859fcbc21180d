/** The requests that the client of a session may send, and their handlers. */
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
import type { Extra, Site } from './calling.ts'
import { complete } from './completion.ts'
import { getPrompt, listPrompts } from './prompts.ts'
import { listResources, readResource, resourceTemplates } from './resources.ts'
import { callTool, listTools } from './tools.ts'

/** The scope that resources, prompts and completion need, and the one for starting runs. */
const READS = 'agents:read'
const RUNS = 'runs:write'
/** The protocol's code for an unknown resource, and JSON-RPC's for any other error of a server. */
const RESOURCE_NOT_FOUND = -32002
const SERVER_ERROR = -32000

/** What a session with these scopes can do. */
export function capabilitiesFor({ find }: Pick<McpContext, 'find'>, isAllowed: Site['isAllowed']): ServerCapabilities {
	return {
		tools: {},
		...(isAllowed(READS) && { resources: {}, completions: {} }),
		...(isAllowed(READS) && find('skills') && { prompts: { listChanged: true } }),
		// Messages are about the runs of calls.
		...(isAllowed(RUNS) && { logging: {} }),
	}
}

export function answerRequests(server: Server, site: Site): void {
	const { ctx, isAllowed, beginCall } = site
	const on: Server['setRequestHandler'] = (schema, work) =>
		server.setRequestHandler(schema, (request, extra) => answer(site, extra, async () => work(request, extra)))
	on(ListToolsRequestSchema, () => ({ tools: listTools(ctx, isAllowed) }))
	on(CallToolRequestSchema, ({ params }, extra) => {
		const end = beginCall()
		const call = callOf(site, extra, server.getClientCapabilities())
		return callTool(ctx, isAllowed, params.name, params.arguments ?? {}, call).finally(end)
	})
	const { prompts, logging } = capabilitiesFor(ctx, isAllowed)
	if (logging)
		on(SetLevelRequestSchema, ({ params }) => {
			site.log.level = params.level
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
	{ ctx, clearance, leaving, forget }: Site,
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
		if (extra.signal.aborted && !leaving.aborted) forget(extra.requestId)
	}
}

/** An error that is not the result of a tool, as the protocol has it. A bug is reported without details, which may be internals. */
function toRpcError(error: unknown): Error {
	if (!(error instanceof Fault)) return rpcError(ErrorCode.InternalError, 'internal', 'internal error')
	const { code, said: message } = error
	if (code === 'not_found') return rpcError(RESOURCE_NOT_FOUND, code, message)
	if (code === 'invalid_request' || code === 'tool_unknown') return rpcError(ErrorCode.InvalidParams, code, message)
	return rpcError(SERVER_ERROR, code, message)
}

/** The SDK's own class would write the code before the message. */
function rpcError(rpcCode: number, code: FaultCode, message: string): Error {
	return Object.assign(new Error(message), { code: rpcCode, data: { code } })
}
