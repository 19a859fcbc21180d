import { join } from 'node:path'
import { definePlugin } from '../../core/plugin.ts'
import type { AgentRef } from '../../core/plugin.ts'
import type { McpSettings } from './contract.ts'
import { openProcesses } from './processes.ts'
import { routes } from './routes.ts'
import { serversOf } from './servers.ts'
import { toolsOf } from './tools.ts'

/** MCP servers: what agents get by the Model Context Protocol. */
export default definePlugin<McpSettings>({
	name: 'mcp',
	needs: ['auth', 'agents'],
	// Two processes of one server at the same time would share its files.
	exclusive: true,
	config: (joi) => joi.object<McpSettings>().unknown(),
	async start(ctx) {
		const processes = openProcesses(join(ctx.gateway.home, 'run', 'mcp'), ctx.log)
		await processes
			.reap()
			.catch((error: unknown) => ctx.log.error({ err: error }, 'leftovers could not be cleared away'))
		const servers = serversOf(ctx, processes)
		const { herd } = servers
		ctx.defer(() => processes.stopAll(), 'processes of MCP servers')
		ctx.defer(() => herd.close(), 'connections to MCP servers')
		ctx.tools(async (agent) => toolsOf(agent, (await herd.of(agent)).values(), ctx))

		ctx.on('agent.deleted', ({ payload }) => herd.forget(String(payload.uid)))
		const reconnect = (uses: (one: { agent: AgentRef; secrets: readonly string[] }) => boolean): void => {
			for (const connection of herd.all()) {
				const { record, agent, status } = connection
				if (status !== 'disabled' && uses({ agent, secrets: record.secrets })) void connection.restart()
			}
		}
		// A grant that was given or taken back holds from now on.
		for (const type of ['vault.granted', 'vault.revoked']) {
			ctx.on(type, ({ agent_id }) => reconnect(({ agent, secrets }) => agent.name === agent_id && secrets.length > 0))
		}
		const connectAll = async (): Promise<void> => {
			await ctx.serving
			if (ctx.signal.aborted) return
			ctx.defer(
				ctx.find('vault')?.onChanged(({ name }) => reconnect(({ secrets }) => secrets.includes(name))) ?? (() => {}),
				'listener of secrets',
			)
			for await (const agent of ctx.use('agents').list()) {
				if (ctx.signal.aborted) return
				await herd.of(agent)
			}
		}
		connectAll().catch((error: unknown) => ctx.log.error({ err: error }, 'MCP servers could not be connected'))
		return servers
	},
	http: (server, ctx) => routes(server, ctx),
})
