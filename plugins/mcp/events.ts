import type { EventType } from '../../core/plugin.ts'

export default {
	'mcp.added': {
		description: 'An agent was given an MCP server, whose program now runs or whose address is now called.',
		payload: {
			server: "The server's name.",
			mcp_id: "The server's id.",
			transport: '`stdio`, `sse` or `http`.',
			'command?': 'The program, with stdio.',
			'args?': 'Its arguments.',
			'url?': 'The address, with the others.',
		},
	},
	'mcp.removed': {
		description: 'An MCP server was taken away from an agent.',
		payload: {
			server: "The server's name.",
			mcp_id: "The server's id.",
			transport: '`stdio`, `sse` or `http`.',
			'command?': 'The program, with stdio.',
			'args?': 'Its arguments.',
			'url?': 'The address, with the others.',
		},
	},
	'mcp.accepted': {
		description: 'An operator accepted changed tools of an MCP server.',
		payload: {
			server: "The server's name.",
			mcp_id: "The server's id.",
			transport: '`stdio`, `sse` or `http`.',
			'command?': 'The program, with stdio.',
			'args?': 'Its arguments.',
			'url?': 'The address, with the others.',
			tools: 'The tools that were accepted.',
		},
	},
	'mcp.connected': {
		description: 'An MCP server is connected.',
		payload: {
			server: "The server's name.",
			mcp_id: "The server's id.",
			protocol_version: 'The version of the protocol that both speak.',
			tools: 'How many tools it offers.',
		},
	},
	'mcp.disconnected': {
		description: 'An MCP server is no longer connected.',
		payload: {
			server: "The server's name.",
			mcp_id: "The server's id.",
			status: 'What it is now: `disabled`, `reconnecting` or `error`.',
			reason: 'Why it ended.',
		},
	},
	'mcp.called': {
		description: "An agent calls an MCP server's tool.",
		payload: {
			server: "The server's name.",
			tool: "The tool's own name at the server.",
			call_id: 'The call, unique in its run.',
			arguments: 'What it is called with, as JSON text; cut where it is long.',
		},
	},
	'mcp.result': {
		description: "An MCP server's tool answered.",
		payload: {
			server: "The server's name.",
			tool: "The tool's own name at the server.",
			call_id: 'The call, unique in its run.',
			result: 'What the model is told, as text; cut where it is long.',
		},
	},
	'mcp.failed': {
		description: "An MCP server's tool failed.",
		payload: {
			server: "The server's name.",
			tool: "The tool's own name at the server.",
			call_id: 'The call, unique in its run.',
			code: 'The [code of the error](http-api.md#codes).',
			message: 'What is wrong, for people.',
		},
	},
} satisfies Record<string, EventType>
