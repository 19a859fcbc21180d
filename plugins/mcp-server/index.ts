import { definePlugin } from '../../core/plugin.ts'
import type { McpServer, McpServerSettings } from './contract.ts'
import { routes } from './routes.ts'
import { Sessions } from './sessions.ts'

/** The gateway as a server of the Model Context Protocol: its agents are tools of other programs. Off by default. */
export default definePlugin<McpServerSettings>({
	name: 'mcp-server',
	needs: ['auth', 'agents', 'runs'],
	config: (joi) =>
		joi.object<McpServerSettings>({
			max_sessions: joi
				.number()
				.integer()
				.min(2)
				.max(10_000)
				.default(200)
				.description('Sessions that may be open at the same time. Default 200.'),
			idle_timeout_s: joi
				.number()
				.integer()
				.min(1)
				.max(86_400)
				.default(1_800)
				.description('Seconds after which a session without a call ends. Default 1800.'),
			max_wait_s: joi
				.number()
				.integer()
				.min(1)
				.max(86_400)
				.default(600)
				.description('Seconds for which a call waits for a run. Default 600.'),
			stall_timeout_s: joi
				.number()
				.integer()
				.min(1)
				.max(300)
				.default(30)
				.description('Seconds for which a client may take nothing before its stream is cut. Default 30.'),
		}),
	start: (ctx): McpServer => ctx.own(new Sessions(ctx), 'MCP sessions'),
	http: (server, ctx) => routes(server, ctx),
})
