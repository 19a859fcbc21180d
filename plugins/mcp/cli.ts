import type { CommandFile } from '../../core/cli/command.ts'
import { listed } from '../../core/cli/listed.ts'

export default {
	commands: {
		mcp: listed('abilities', 3, 'Give agents tools of MCP servers', () => import('./cli/mcp.ts')),
	},
	hints: {
		'GET /v1/agents/{id}/mcp': 'svc mcp list {id}',
		'PATCH /v1/agents/{id}/mcp/{mcp_id}': 'svc mcp enable {id} {mcp_id}',
	},
} satisfies CommandFile
