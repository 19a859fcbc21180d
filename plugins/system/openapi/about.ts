/** The document's text about the API as a whole. */

export const about = `All responses are JSON, except event streams and the lines of health checks. Errors have the schema \`Error\`: the message states
what to change, and the code stays the same in later versions. Errors of the chat API, which has a separate address, are
\`{success: false, error}\`.

**Callers.** A caller authenticates with \`Authorization: Bearer <token>\`; each operation lists the scope that the token needs,
and \`*\` is sufficient for all. In loopback mode (the default), a request from the gateway's own machine needs no token. After 10
failed attempts within a minute, an address gets 429 with \`Retry-After\`; a valid token is always accepted.

**Bodies** must be \`application/json\`, at most 1 MiB, and must not contain unknown fields. Times are ISO 8601 in UTC.

**Request ids.** Each response has the header \`X-Request-Id\`, which is also in the gateway's log. A request may set its own.

**Event streams** are Server-Sent Events. Regular comments keep the connection open. A client that lost its connection resumes with
\`Last-Event-ID\`.

**Retries.** With \`Idempotency-Key\`, a request that starts a run is safe to retry. After a \`503\` or \`507\` nothing has changed.`

const tags: Record<string, string> = {
	agents: 'Agents: their persona, model, limits and current session.',
	backups: 'Copies of all data of the gateway.',
	channels: 'Connected chat platforms, and the chats that are bound to agents.',
	chat: 'The older chat API, at a separate address: a message and its reply.',
	configuration: 'Read, validate and change gateway.yaml.',
	events: 'Events, live and from the log.',
	gateway: 'The gateway itself: its health, plugins and API.',
	heartbeats: 'Schedules on which an agent starts automatically.',
	mcp: 'External tool servers of an agent, over the Model Context Protocol.',
	memory: 'Long-term memory of an agent.',
	models: 'Model providers: list those that are set up, and test new ones.',
	openai: 'Agents as models of an OpenAI-compatible API.',
	runs: 'Runs: each leads from one prompt to an answer, and may ask questions.',
	skills: 'Skills of an agent: Markdown that stays in quarantine until an operator approves it.',
	tokens: 'Bearer tokens with scopes.',
	usage: 'Tokens and cost of model calls.',
	vault: 'Secrets, and which agents may use them.',
	webhooks: 'Addresses at which other services start runs.',
}

/** `plugin`: the first plugin whose routes have the tag. */
export function tagOf(name: string, plugin: string): { name: string; description: string } {
	return { name, description: tags[name] ?? `Routes of the plugin ${plugin}.` }
}
