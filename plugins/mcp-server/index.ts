import { definePlugin } from '../../core/plugin.ts'
import type { McpServerSettings } from './contract.ts'
import { announceIssuer } from './protected-resource.ts'
import { routes } from './routes.ts'
import { Sessions } from './sessions.ts'

/** The gateway as a server of the Model Context Protocol, so that other programs can use its agents as tools. Off by default. */
export default definePlugin<McpServerSettings, Sessions>({
	name: 'mcp-server',
	needs: ['auth', 'agents', 'runs'],
	start: (ctx) => ctx.own(new Sessions(ctx), 'MCP sessions'),
	http(server, ctx, sessions) {
		routes(server, ctx, sessions)
		announceIssuer(server, ctx)
	},
})
