/** Every scope that a token can have, with what it grants. */
export const scopes = {
	'agents:read': 'List and get agents with their history, runs, questions, skills and webhooks',
	'agents:write': 'Create, change, reset and delete agents, and what is theirs',
	'runs:write': 'Start, stop and cancel runs, answer questions',
	'vault:read': 'List secrets',
	'vault:write': 'Create and manage secrets and grants',
	'tokens:admin': 'Create, list and revoke tokens',
	'events:read': 'Stream events, read the audit log and the metrics',
	'channels:read': 'List channels',
	'channels:write': 'Create and manage channels',
	'*': 'Everything',
} as const satisfies Record<string, string>

export const scopeNames: readonly string[] = Object.keys(scopes)
