/** The document's text about the API as a whole. */

export const about = `Every answer but event streams and health lines is JSON. Errors have the shape \`Error\`: the message says what to
change, and the code stays the same in later versions. Operations of the older chat surface, which has an address of its own,
answer errors as \`{success: false, error}\`.

**Callers.** A caller shows who it is by \`Authorization: Bearer <token>\`; each operation names the scope that the token needs,
and \`*\` is enough for all. In loopback mode (the default) a request from the gateway's own machine needs no token. After 10
failed attempts within a minute an address is answered 429 with \`Retry-After\`; a valid token is taken at any time.

**Bodies** must be \`application/json\`, at most 1 MiB, and must hold no unknown fields. Times are ISO 8601 in UTC.

**Request ids.** Each answer carries \`X-Request-Id\`, which the log of the gateway repeats; a request may bring its own.

**Event streams** are Server-Sent Events: a comment now and then keeps the connection open, and a client that was cut off continues
with \`Last-Event-ID\`.

**Repeating.** \`Idempotency-Key\` makes starting a run safe to repeat. A \`503\` or \`507\` has changed nothing.`

const tags: Record<string, string> = {
	agents: 'Agents: their persona, model and limits, and the session that they are in.',
	backups: 'Copies of everything that the gateway keeps.',
	channels: 'Chat platforms that are connected, and the chats that are bound to agents.',
	chat: 'The older chat surface, on an address of its own: a message, and its reply.',
	configuration: 'gateway.yaml: read, check and change it.',
	events: 'What happens, live and from the log.',
	gateway: 'The gateway itself: whether it is well, what runs in it, what it can do.',
	heartbeats: 'Times at which an agent starts by itself.',
	mcp: 'External tool servers of an agent, by the Model Context Protocol.',
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
