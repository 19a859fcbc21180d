import type { CommandFile } from '../../core/cli/command.ts'

export default {
	commands: {
		mcp: {
			summary: 'Give agents tools of MCP servers',
			group: 'abilities',
			order: 3,
			load: () => import('./cli/mcp.ts'),
		},
	},
	hints: {
		'GET /v1/agents/{id}/mcp': 'svc mcp list {id}',
		'PATCH /v1/agents/{id}/mcp/{mcp_id}': 'svc mcp enable {id} {mcp_id}',
	},
} satisfies CommandFile
