import type { EventType } from '../../core/plugin.ts'

const server = { server: "The server's name.", mcp_id: "The server's id." }
const described = {
	...server,
	transport: '`stdio`, `sse` or `http`.',
	'command?': 'The program, with stdio.',
	'args?': 'Its arguments.',
	'url?': 'The address, for the other transports.',
}
const call = {
	server: "The server's name.",
	tool: "The tool's own name at the server.",
	call_id: 'The call, unique in its run.',
}

export default {
	'mcp.added': {
		description: 'An MCP server was added to an agent; its program now runs, or its address is now called.',
		payload: described,
	},
	'mcp.removed': {
		description: 'An MCP server was removed from an agent.',
		payload: described,
	},
	'mcp.accepted': {
		description: 'An operator accepted changed tools of an MCP server.',
		payload: {
			...described,
			tools: 'The tools that were accepted.',
		},
	},
	'mcp.connected': {
		description: 'An MCP server is connected.',
		payload: {
			...server,
			protocol_version: 'The negotiated version of the protocol.',
			tools: 'Number of tools that it offers.',
		},
	},
	'mcp.disconnected': {
		description: 'An MCP server is no longer connected.',
		payload: {
			...server,
			status: 'Its new status: `disabled`, `reconnecting`, `needs_login` or `error`.',
			reason: 'Why it ended.',
		},
	},
	'mcp.login_required': {
		description: 'A person must sign in to an MCP server: for the first time, again, or with further scopes.',
		payload: {
			...server,
			scopes: 'The scopes that the server asked for; empty if it named none.',
		},
	},
	'mcp.logged_in': {
		description: 'Somebody signed in to an MCP server for an agent.',
		payload: {
			...server,
			issuer: 'The authorization server.',
			scopes: 'The scopes that were granted.',
		},
	},
	'mcp.logged_out': {
		description: 'The tokens for an MCP server were revoked, as far as its authorization server can, and deleted.',
		payload: {
			...server,
			issuer: 'The authorization server.',
		},
	},
	'mcp.called': {
		description: "An agent calls an MCP server's tool.",
		payload: {
			...call,
			arguments: 'The arguments, as JSON text; cut if long.',
		},
	},
	'mcp.sampling': {
		description: "During a call, an MCP server sends its own request to the agent's model.",
		payload: {
			server: "The server's name.",
			sampling_run_id: 'The run that answers it: without the conversation and the tools of the agent.',
		},
	},
	'mcp.result': {
		description: "An MCP server's tool answered.",
		payload: {
			...call,
			result: 'The result as the model gets it, as text; cut if long.',
			'attachments?': 'What it has besides text, as in `message.user`.',
		},
	},
	'mcp.failed': {
		description: "An MCP server's tool failed.",
		payload: {
			...call,
			code: 'The [code of the error](http-api.md#codes).',
			message: 'The error message, for people.',
		},
	},
} satisfies Record<string, EventType>
