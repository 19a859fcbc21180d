/** docs/events.md, from the event types that the plugins declare. */
import { declaredBy } from '../../core/host/declared.ts'
import type { EventType } from '../../core/plugin.ts'
import { code, table } from './markdown.ts'
import { builtInPlugins } from './plugins.ts'

const head = `# Events

Everything that happens in the gateway is an event. It is stored in the log before it is delivered, streamed live, and
replayed after a lost connection. To follow and read events, use the [HTTP API](http-api.md#events), \`svc events tail\`
and \`svc audit\`. This page is generated from the code.

## The envelope

\`\`\`json
{
  "event_id": "01a2002c-edca-7000-90a2-7545a576faf8",
  "timestamp": "2030-01-31T12:00:00.000Z",
  "agent_id": "ada",
  "run_id": "01a2002c-edca-7000-90a2-7545a576faf7",
  "sequence": 3,
  "event_type": "message.assistant",
  "payload": { "content": "Hello!" }
}
\`\`\`

- \`sequence\` counts the events of a run from 1. Pieces of answers (\`model.stream\`) are counted but not stored, so the
  log skips numbers.
- \`agent_id\` and \`run_id\` are null, and \`sequence\` is 0, if an event belongs to no agent or run.
- The event that started a run (\`webhook.accepted\`, \`heartbeat.fired\`) is the first event of the run, before
  \`run.started\`.
- All events except \`model.stream\` are kept for \`events.retention_days\`. Those of a run that has not ended are kept
  until it has ended.
- \`payload.actor\` identifies who caused an event, if that is known: \`{kind, id?, label?}\`, see [Who caused
  it](#who-caused-it).
- Secrets that the agent has read are redacted: \`[redacted:NAME]\` for readers with \`vault:read\`, \`[redacted]\` for
  others.
- A field marked *optional* is absent if it does not apply. New fields and types may be added; ignore those that you do
  not know.
- Plugins may emit their own types of events. These begin with the plugin's name; a third-party plugin cannot emit the
  types of this page, or others that begin with their first words or with the name of a built-in plugin.

## Who caused it

Any event may have \`payload.actor\`. Events of an agent's own run omit it if the agent itself is the cause.

| \`kind\` | Who | \`id\` | \`label\` |
|---|---|---|---|
| \`token\` | A caller with a token. | The token's id. | The token's label. |
| \`local\` | A caller on the gateway's machine without a token, or with the set-up code. | | |
| \`oidc\` | A caller with a token of the identity provider. | The subject (\`sub\`). | The email address or name in the token. |
| \`channel\` | A person in a chat. | The channel's id. | The sender's id on that platform. |
| \`webhook\` | A delivery to a webhook. | The webhook's slug. | |
| \`agent\` | An agent, in one of its runs. | The agent's name. | |
| \`gateway\` | The gateway itself, such as a heartbeat. | | |

\`GET /v1/audit?actor=\` and \`svc audit --actor\` find the events of one \`id\`. For a caller without an \`id\`, search for its
\`kind\`.

## How a run ends

The last event of a run is one of these three, so a client that waits for the end of a run must watch for all of them:

| Event | The run |
|---|---|
| \`run.completed\` | ended with an answer. |
| \`run.failed\` | ended with an error. |
| \`run.stopped\` | was stopped or cancelled. It has neither completed nor failed, and **neither of the other two follows**. |

\`channel.message_sent\` may follow: the answer of a run is sent to its chat after the run has ended.

## Causes of security.violation

\`reason\` identifies what was blocked:

| \`reason\` | Blocked |
|---|---|
| \`foreign_page\` | A request without a token, from this machine, that a web page may have sent; \`message\` states [the sign of it](security.md#who-is-local). |
| \`token_invalid\` | A bearer token that is unknown or malformed. |
| \`token_revoked\`, \`token_expired\` | A token that is no longer valid; \`token_id\` names it. |
| \`scope_missing\` | A request for which the caller lacks the scope; \`token_id\` is null for a caller without a token. |
| \`login_refused\` | A sign-in to the console that was not begun in this browser, that the identity provider did not confirm, or for which no rule matches. |
| \`setup_code_wrong\` | A wrong set-up code for the first token. |
| \`webhook_signature\` | A delivery to a webhook whose signature is missing or wrong. |
| \`undeclared\` | A skill's program that uses what the skill does not declare. |
| \`address_refused\` | An address from outside that leads into the private network. |
| \`skill_changed\` | A stored skill that differs from the approved one. |
| \`skill_invalid\` | An approved skill whose document breaks a rule that this version introduced. |
| \`channel_refused\` | A channel that the caller may not set up that way. |
| \`pairing_codes\` | Too many wrong pairing codes. |
| \`mcp_refused\` | An MCP server that the caller may not add. |
| \`mcp_login_refused\` | An answer to a login to an MCP server that was not in progress, or that came from another browser or authorization server. |
| \`mcp_tool_changed\` | An MCP server's tool whose definition has changed since it was accepted. |

For each cause that strangers can bring about, at most 60 events are stored at once (30 for each webhook), and then one a
minute. \`untold\` counts the others since the event before, \`since\` is when the first of them came, and \`sources\`
lists their addresses. The text of a token or code is never part of an event.
`

export async function eventsPage(): Promise<string> {
	const { events } = declaredBy(await builtInPlugins())
	const families = [...Map.groupBy(events, ([type]) => type.split('.', 1)[0] as string)].toSorted(([a], [b]) =>
		a < b ? -1 : 1,
	)
	const contents = families.map(([name]) => `[${name}](#${name})`).join(' · ')
	const parts = families.map(([name, types]) => `## ${name}\n\n${types.map(described).join('\n\n')}\n`)
	return `${head}\n${contents}\n\n${parts.join('\n')}`
}

function described([type, { description, payload }]: [string, EventType]): string {
	const rows = Object.entries(payload).map(([name, what]) => [
		name.endsWith('?') ? `${code(name.slice(0, -1))}, optional` : code(name),
		what,
	])
	const fields = rows.length > 0 ? table(['Field', ''], rows) : 'Its payload is empty.'
	return `### ${type}\n\n${description}\n\n${fields}`
}
