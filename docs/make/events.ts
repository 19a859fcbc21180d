/** docs/events.md, from the catalogue of events. */
import { catalogue } from '../../plugins/events/catalogue.ts'
import type { EventKind } from '../../plugins/events/catalogue.ts'
import { code, table } from './markdown.ts'

const kinds: Readonly<Record<string, EventKind>> = catalogue

const head = `# Events

Everything that happens in the gateway is an event: kept in the log before anybody hears of it, streamed live, replayed after a
lost connection. How to follow and read them: [HTTP API](http-api.md#events), or \`svc events tail\` and \`svc audit\`. This page is
made from the gateway's own catalogue.

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

- \`sequence\` counts the events of a run from 1. Pieces of answers (\`model.stream\`) count and are not kept, so the log skips numbers.
- \`agent_id\` and \`run_id\` are null, and \`sequence\` is 0, where an event belongs to no agent or run.
- All but \`model.stream\` are kept for \`events.retention_days\`, those of runs that have not ended for longer.
- Secrets that were read are taken out: \`[redacted:NAME]\`.
- A field marked *optional* is left out where it does not apply. New fields and types may be added; leave out what you do not know.
- Plugins may tell events of their own types.
`

export function eventsPage(): string {
	const families = Map.groupBy(Object.keys(kinds), (type) => type.split('.', 1)[0] as string)
	const contents = [...families.keys()].map((name) => `[${name}](#${name})`).join(' · ')
	const parts = [...families].map(([name, types]) => `## ${name}\n\n${types.map(told).join('\n\n')}\n`)
	return `${head}\n${contents}\n\n${parts.join('\n')}`
}

function told(type: string): string {
	const { tells, payload } = kinds[type] as EventKind
	const rows = Object.entries(payload).map(([name, what]) => [
		name.endsWith('?') ? `${code(name.slice(0, -1))}, optional` : code(name),
		what,
	])
	const fields = rows.length > 0 ? table(['Field', ''], rows) : 'Its payload is empty.'
	return `### ${type}\n\n${tells}\n\n${fields}`
}
