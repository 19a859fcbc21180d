/** What the client of a session may ask for, and who answers. */
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import {
	CallToolRequestSchema,
	ListResourcesRequestSchema,
	ListResourceTemplatesRequestSchema,
	ListToolsRequestSchema,
	ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { RequestId, Result, ServerNotification, ServerRequest } from '@modelcontextprotocol/sdk/types.js'
import { isFault } from '../../core/errors.ts'
import type { McpContext } from './call.ts'
import { callOf } from './calling.ts'
import { listResources, readResource, resourceTemplates } from './resources.ts'
import { toRpcError } from './rpc-error.ts'
import { callTool, listTools } from './tools.ts'

/** As much of a session as its requests need. */
export interface Site {
	ctx: McpContext
	isAllowed(scope: string): boolean
	/** Aborts when the session is about to end: what goes on by itself is waited for no longer. */
	leaving: AbortSignal
	/** The session ends or has ended. */
	isOver(): boolean
	/** The full name of a conversation of this caller; without a name, the session's own. */
	conversation(name?: string): string
	/** Counts a call until what it answers with is called. Throws `rate_limited`. */
	beginCall(): () => void
	/** A request was cancelled, and has no response. */
	forget(id: RequestId): void
}

export type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>

/** What resources need. */
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

/** What leaves here does not pass by the gateway's own answers, so the redactor is asked here. */
async function answer({ ctx, isOver, forget }: Site, extra: Extra, work: () => Promise<Result>): Promise<Result> {
	const { redactor, log } = ctx
	try {
		return redactor.data(await work(), 'response')
	} catch (error) {
		if (!isFault(error)) log.error({ err: error }, 'a request of an MCP client failed')
		const told = toRpcError(error)
		told.message = redactor.text(told.message, 'response')
		throw told
	} finally {
		if (extra.signal.aborted && !isOver()) forget(extra.requestId)
	}
}
