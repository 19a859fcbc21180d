import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { isFault } from '../../core/errors.ts'
import { holds, scoped } from '../shared/scopes.ts'
import type { McpServers, McpSettings, NewMcpServer } from './contract.ts'
import type { ServerParams } from './schemas.ts'
import { added, details, newServer, params, paramsOfServer, shownNewServer, view } from './schemas.ts'

const tags = ['api', 'mcp']

export function routes(server: Server, ctx: Context<McpSettings>, servers: McpServers): void {
	const agentOf = ({ id }: Pick<ServerParams, 'id'>): Promise<AgentRef> => ctx.use('agents').get(id)

	server.route<{ Params: ServerParams }>({
		method: 'GET',
		path: '/v1/agents/{id}/mcp',
		options: {
			id: 'listMcpServers',
			description: 'List the MCP servers of an agent',
			tags,
			auth: scoped('agents:read'),
			validate: { params },
			response: { status: { 200: Joi.array().items(view) } },
		},
		handler: async (request) => servers.list(await agentOf(request.params)),
	})
	server.route<{ Params: ServerParams; Payload: NewMcpServer }>({
		method: 'POST',
		path: '/v1/agents/{id}/mcp',
		options: {
			id: 'addMcpServer',
			description: 'Add an MCP server to an agent',
			notes: [
				'Waits up to 5 s for the first connection and returns the `status` at that time; a slower connection continues in the background. If it is not `connected`, `status_detail` gives the reason.',
				'A caller without the scope `*` may start only what `mcp.allowed_commands` in gateway.yaml lists, and reach private addresses only where `mcp.allowed_hosts` lists them.',
				'`sampling` and `roots` are off unless a caller with the scope `*` allows them here.',
				'A secret in `env`, `headers` or `url` requires the scope `vault:write` or `*`, in addition to the grant of the agent: a caller who chooses a server and a secret for it can read the secret there. A server that was added without this scope does not get secrets in the arguments of calls either.',
			],
			tags,
			auth: scoped('agents:write'),
			plugins: { openapi: { errors: [409], body: shownNewServer } },
			validate: { params, payload: newServer.required().prefs({ convert: false }) },
			response: { status: { 201: added } },
		},
		handler: async (request, h) => {
			const agent = await agentOf(request.params)
			const { scope } = request.auth.credentials
			const permissions = { trusted: scope.includes('*'), secrets: holds(scope, 'vault:write') }
			try {
				return h.response(await servers.add(agent, request.payload, permissions)).code(201)
			} catch (error) {
				if (isFault(error, 'forbidden', 'address_refused')) {
					const { name, transport, command, args, url } = request.payload
					const about = transport === 'stdio' ? { command, args } : { url }
					const payload = { reason: 'mcp_refused', message: error.message, server: name, transport, ...about }
					await ctx.emit({ event_type: 'security.violation', payload }, agent.name)
				}
				throw error
			}
		},
	})
	server.route<{ Params: ServerParams }>({
		method: 'GET',
		path: '/v1/agents/{id}/mcp/{mcp_id}',
		options: {
			id: 'getMcpServer',
			description: 'Read an MCP server with its connection and its tools',
			notes: 'The descriptions of the server and its tools come from outside.',
			tags,
			auth: scoped('agents:read'),
			validate: { params: paramsOfServer },
			response: { status: { 200: details } },
		},
		handler: async (request) => servers.get(await agentOf(request.params), request.params.mcp_id),
	})
	server.route<{ Params: ServerParams; Payload: { enabled: boolean } }>({
		method: 'PATCH',
		path: '/v1/agents/{id}/mcp/{mcp_id}',
		options: {
			id: 'updateMcpServer',
			description: 'Switch an MCP server on or off',
			tags,
			auth: scoped('agents:write'),
			validate: {
				params: paramsOfServer,
				payload: Joi.object({ enabled: Joi.boolean().required() })
					.required()
					.prefs({ convert: false })
					.example({ enabled: true }),
			},
			response: { status: { 200: view } },
		},
		handler: async ({ params, payload }) => servers.enable(await agentOf(params), params.mcp_id, payload.enabled),
	})
	server.route<{ Params: ServerParams }>({
		method: 'POST',
		path: '/v1/agents/{id}/mcp/{mcp_id}/restart',
		options: {
			id: 'restartMcpServer',
			description: 'Reconnect an MCP server',
			notes: [
				'Ends its process or session, if there is one, with its calls in progress, and waits up to 5 s for the new connection. Resets the count of failures.',
				'Use it if the status is `error` and the cause was fixed. For a server that is switched off the answer is 409.',
			],
			tags,
			auth: scoped('agents:write'),
			plugins: { openapi: { errors: [409] } },
			validate: { params: paramsOfServer },
			response: { status: { 200: view } },
		},
		handler: async (request) => servers.restart(await agentOf(request.params), request.params.mcp_id),
	})
	server.route<{ Params: ServerParams; Payload: { digests?: string[] } | null }>({
		method: 'POST',
		path: '/v1/agents/{id}/mcp/{mcp_id}/accept',
		options: {
			id: 'acceptMcpTools',
			description: 'Accept changed tools of an MCP server',
			notes: 'All held tools, or those with the digests that were reviewed.',
			tags,
			auth: scoped('agents:write'),
			plugins: { openapi: { errors: [409] } },
			validate: {
				params: paramsOfServer,
				payload: Joi.object({
					digests: Joi.array()
						.items(Joi.string().pattern(/^[0-9a-f]{64}$/, 'sha256 as hex'))
						.min(1)
						.max(256)
						.unique(),
				})
					.allow(null)
					.prefs({ convert: false })
					.example(null),
			},
			response: { status: { 200: details } },
		},
		handler: async ({ params, payload }) => servers.accept(await agentOf(params), params.mcp_id, payload?.digests),
	})
	server.route<{ Params: ServerParams }>({
		method: 'DELETE',
		path: '/v1/agents/{id}/mcp/{mcp_id}',
		options: {
			id: 'removeMcpServer',
			description: 'Remove an MCP server from an agent',
			notes: 'Its process or session has ended when the answer arrives.',
			tags,
			auth: scoped('agents:write'),
			validate: { params: paramsOfServer },
		},
		handler: async (request, h) => {
			await servers.remove(await agentOf(request.params), request.params.mcp_id)
			return h.response().code(204)
		},
	})
}
