import { join } from 'node:path'
import { definePlugin } from '../../core/plugin.ts'
import type { ErrorCode } from '../../core/plugin.ts'
import type { ServerConnection } from './connection.ts'
import events from './events.ts'
import { instructionsOf } from './instructions.ts'
import type { McpCode, McpServers, McpSettings } from './contract.ts'
import { openProcesses } from './processes.ts'
import { loginRoutes } from './login/routes.ts'
import { routes } from './routes.ts'
import { serversOf } from './servers.ts'
import { awaitTools, toolsOf } from './tools.ts'

/** MCP servers: tools that agents get through the Model Context Protocol. */
export default definePlugin<McpSettings, McpServers>({
	name: 'mcp',
	needs: ['auth', 'agents'],
	events,
	errors: {
		mcp_unavailable: { status: 503, description: 'The MCP server is not connected.' },
		mcp_failed: { status: 502, description: 'The MCP server returned an error.' },
		mcp_timeout: { status: 504, description: 'The MCP server did not answer in time.' },
	} satisfies Record<McpCode, ErrorCode>,
	// Two processes of one server must not run at the same time: they would share its files.
	exclusive: true,
	async start(ctx) {
		const folder = join(ctx.gateway.home, 'run', 'mcp')
		const processes = ctx.own(openProcesses(folder, ctx.log), 'processes of MCP servers')
		await processes
			.reap()
			.catch((error: unknown) => ctx.log.error({ err: error }, 'processes of an earlier gateway could not be ended'))
		const servers = serversOf(ctx, processes)
		const { registry } = servers
		ctx.defer(() => registry.close(), 'connections to MCP servers')
		ctx.tools(async (agent) => toolsOf((await registry.of(agent)).values(), ctx))
		ctx.extend('tools', { ready: (agent, signal) => awaitTools(registry, agent, signal) })
		ctx.extend('prompt', { stable: async (agent) => instructionsOf((await registry.of(agent)).values()) })

		ctx.on('agent.deleted', ({ payload }) => registry.forget(String(payload.uid)))
		const reconnect = (uses: (connection: ServerConnection) => boolean): void => {
			for (const connection of registry.all())
				if (connection.status !== 'disabled' && uses(connection)) void connection.restart()
		}
		// An added or revoked grant takes effect with a new connection.
		for (const type of ['vault.granted', 'vault.revoked']) {
			ctx.on(type, ({ agent_id }) =>
				reconnect(({ agent, record }) => agent.name === agent_id && record.secrets.length > 0),
			)
		}
		// During a reload, the instance before this one may have completed a login.
		ctx.on('mcp.logged_in', ({ payload }) =>
			reconnect(({ record, login }) => record.id === payload.mcp_id && login?.takeOver() === true),
		)
		const connectAll = async (): Promise<void> => {
			await ctx.serving
			if (ctx.signal.aborted) return
			ctx.defer(
				ctx.find('vault')?.onChanged(({ name }) => reconnect(({ record }) => record.secrets.includes(name))) ??
					(() => {}),
				'listener of secrets',
			)
			for await (const agent of ctx.use('agents').list()) {
				if (ctx.signal.aborted) return
				await registry.of(agent)
			}
		}
		connectAll().catch((error: unknown) => ctx.log.error({ err: error }, 'MCP servers could not be connected'))
		ctx.extend('metrics', {
			metrics: { svc_mcp_servers: { help: 'MCP servers of all agents, by status.', type: 'gauge' } },
			read: () => ({
				svc_mcp_servers: [...servers.statuses()].map(([status, value]) => ({ labels: { status }, value })),
			}),
		})
		return servers
	},
	http(server, ctx, servers) {
		routes(server, ctx, servers)
		loginRoutes(server, ctx, servers)
	},
})
