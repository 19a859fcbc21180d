/** The document's text about the API as a whole. */

export const about = `Every answer except event streams and health lines is JSON. Errors have the shape \`Error\`: the message states what to
change, and the code stays the same in later versions. Operations of the chat API, which has a separate address,
answer errors as \`{success: false, error}\`.

**Callers.** A caller authenticates with \`Authorization: Bearer <token>\`; each operation lists the scope that the token needs,
and \`*\` is sufficient for all. In loopback mode (the default) a request from the gateway's own machine needs no token. After 10
failed attempts within a minute an address gets 429 with \`Retry-After\`; a valid token is always accepted.

**Bodies** must be \`application/json\`, at most 1 MiB, and must not contain unknown fields. Times are ISO 8601 in UTC.

**Request ids.** Each answer has the header \`X-Request-Id\`, which is also in the log of the gateway; a request may set its own.

**Event streams** are Server-Sent Events: regular comments keep the connection open, and a client that lost its connection continues
with \`Last-Event-ID\`.

**Repeating.** With \`Idempotency-Key\` a request that starts a run is safe to repeat. After a \`503\` or \`507\` nothing has changed.`

const tags: Record<string, string> = {
	agents: 'Agents: their persona, model, limits and current session.',
	backups: 'Copies of everything that the gateway keeps.',
	channels: 'Chat platforms that are connected, and the chats that are bound to agents.',
	chat: 'The older chat API, at a separate address: a message and its reply.',
	configuration: 'gateway.yaml: read, check and change it.',
	events: 'What happens, live and from the log.',
	gateway: 'The gateway itself: its health, what runs in it, what it can do.',
	heartbeats: 'Schedules on which an agent starts automatically.',
	mcp: 'External tool servers of an agent, over the Model Context Protocol.',
	memory: 'Long-term memory of an agent.',
	models: 'Providers of models: those that are set up, and a test of one that is not.',
	openai: 'Agents as models of an OpenAI-compatible API.',
	runs: 'Runs: each takes one prompt to an answer, with the questions that it asks.',
	skills: 'Skills of an agent: Markdown that waits in quarantine until somebody approves it.',
	tokens: 'Bearer tokens with scopes.',
	usage: 'Tokens and cost of model calls.',
	vault: 'Secrets, and which agents may use them.',
	webhooks: 'Addresses at which other services start runs.',
}

/** `plugin`: the one whose routes have the tag first. */
export function tagOf(name: string, plugin: string): { name: string; description: string } {
	return { name, description: tags[name] ?? `Of the plugin ${plugin}.` }
}
