/** The requests that the client of a session may send, and their handlers. */
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
	CallToolRequestSchema,
	ListResourcesRequestSchema,
	ListResourceTemplatesRequestSchema,
	ListToolsRequestSchema,
	ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { Result } from '@modelcontextprotocol/sdk/types.js'
import { isFault } from '../../core/errors.ts'
import { callOf } from './calling.ts'
import type { Extra, Site } from './calling.ts'
import { listResources, readResource, resourceTemplates } from './resources.ts'
import { toRpcError } from './rpc-error.ts'
import { callTool, listTools } from './tools.ts'

/** The scope that resources need. */
export const READS = 'agents:read'

export function answerRequests(server: Server, site: Site): void {
	const { ctx, isAllowed, beginCall } = site
	server.setRequestHandler(ListToolsRequestSchema, (_, extra) =>
		answer(site, extra, async () => ({ tools: listTools(ctx, isAllowed) })),
	)
	server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) =>
		answer(site, extra, async () => {
			const end = beginCall()
			const { call, release } = callOf(site, extra, server.getClientCapabilities())
			try {
				return await callTool(ctx, isAllowed, params.name, params.arguments ?? {}, call)
			} finally {
				release()
				end()
			}
		}),
	)
	if (!isAllowed(READS)) return
	server.setRequestHandler(ListResourcesRequestSchema, ({ params }, extra) =>
		answer(site, extra, () => listResources(ctx, params?.cursor)),
	)
	server.setRequestHandler(ListResourceTemplatesRequestSchema, (_, extra) =>
		answer(site, extra, async () => ({ resourceTemplates })),
	)
	server.setRequestHandler(ReadResourceRequestSchema, ({ params }, extra) =>
		answer(site, extra, () => readResource(ctx, params.uri)),
	)
}

async function answer(
	{ ctx, clearance, isOver, forget }: Site,
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
		if (extra.signal.aborted && !isOver()) forget(extra.requestId)
	}
}
