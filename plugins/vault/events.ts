import type { EventType } from '../../core/plugin.ts'

export default {
	'vault.accessed': {
		description: 'An agent read a secret under a grant.',
		payload: {
			secret: "The secret's name.",
			secret_id: "The secret's id.",
			grant_id: "The grant's id.",
			via: 'What read it, such as `vault.read`, `skill:weather` or `mcp:files`.',
		},
	},
	'vault.denied': {
		description: 'An agent was denied the value of a secret.',
		payload: {
			secret: 'The requested name.',
			via: 'The recipient, such as `vault.read`, `skill:weather` or `mcp:files`.',
			'reason?':
				'Absent: no grant. `hosts`: the grant names other hosts; `undeclared`: the skill does not declare it; `server`: the caller who added the server lacked `vault:write`.',
		},
	},
	'vault.secret_created': {
		description: 'A secret was stored.',
		payload: {
			secret_id: "The secret's id.",
			name: 'Its name.',
			'policy_label?': 'Its label, such as `channel`.',
		},
	},
	'vault.secret_updated': {
		description: 'A secret got another value.',
		payload: {
			secret_id: "The secret's id.",
			name: 'Its name.',
			'policy_label?': 'Its label, such as `channel`.',
			version: 'The number of values that the secret has had, with this one.',
		},
	},
	'vault.secret_deleted': {
		description: 'A secret was deleted, with its grants.',
		payload: {
			secret_id: "The secret's id.",
			name: 'Its name.',
			grants: 'How many grants were deleted with it.',
		},
	},
	'vault.granted': {
		description: 'An agent was granted a secret.',
		payload: {
			grant_id: "The grant's id.",
			secret_id: "The secret's id.",
			secret: "The secret's name.",
			reveal: 'Whether the model may see the value.',
			'hosts?': 'The only hosts to which the value may be sent.',
		},
	},
	'vault.revoked': {
		description: 'A grant was revoked.',
		payload: {
			grant_id: "The grant's id.",
			secret_id: "The secret's id.",
		},
	},
	'vault.key_rotated': {
		description: 'The master key of the vault was changed.',
		payload: {
			secrets: 'How many secrets it protects.',
		},
	},
	'vault.reset': {
		description: 'All secrets and grants of a locked vault were deleted.',
		payload: {
			secrets: 'How many secrets were deleted.',
		},
	},
	'security.redacted': {
		description: 'The value of a secret was redacted.',
		payload: {
			'secret?': "The secret's name; only for readers with `vault:read`.",
			'secret_id?': "The secret's id; likewise.",
			sink: 'Where it would have been shown: `event`, `record`, `log`, `model` or `stream`; up to 0.1.0 `response` or `message` too.',
			count: 'How often.',
		},
	},
} satisfies Record<string, EventType>
