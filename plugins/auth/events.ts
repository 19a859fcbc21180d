import type { EventType } from '../../core/plugin.ts'

export default {
	'security.violation': {
		description: 'A forbidden action was blocked.',
		payload: {
			reason: 'What was blocked: one of the [causes](#causes-of-securityviolation).',
			message: 'What was blocked, and why.',
			'what?': 'What the action concerned, such as a host.',
			'skill?': 'The name of the skill.',
			'skill_id?': 'The id of the revision.',
			'server?': "The MCP server's name.",
			'mcp_id?': "The MCP server's id.",
			'tools?': 'The MCP tools that are held back.',
			'transport?': "The MCP server's transport.",
			'command?': 'The program that was not started.',
			'args?': 'Its arguments.',
			'url?': 'The address that was not requested.',
			'type?': 'The type of the channel.',
			'channel_id?': 'The channel.',
			'secret?': 'The secret that was named.',
			'token_id?': 'The token of the caller; null for a caller without one.',
			'slug?': 'The webhook.',
			'delivery_id?': 'The delivery in the log of the webhook; null if it is not stored there.',
			'source_ip?': "The client's address.",
			'untold?': 'How many more were blocked since the last such event.',
			'since?': 'When the first of these was blocked.',
			'sources?': 'Client addresses of these, at most 16.',
		},
	},
	'auth.signed_in': {
		description: 'A person signed in to the console at the identity provider.',
		payload: {},
	},
	'auth.signed_out': {
		description: 'A person signed out of the console.',
		payload: {},
	},
	'token.created': {
		description: 'An API token was created.',
		payload: {
			token_id: 'Its id.',
			scopes: 'What it may do.',
			'agents?': 'The agents that it is for; absent: all.',
			'label?': 'Its label.',
			'limits?': 'Its limits.',
			expires_at: 'When it expires; null: never.',
		},
	},
	'token.revoked': {
		description: 'An API token was revoked.',
		payload: {
			token_id: 'Its id.',
		},
	},
} satisfies Record<string, EventType>
