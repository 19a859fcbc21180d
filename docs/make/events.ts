/** The reference in docs/events.md: all event types that the plugins declare. */
import { declaredBy } from '../../core/host/declared.ts'
import type { EventType } from '../../core/plugin.ts'
import { code, table } from './markdown.ts'
import { builtInPlugins } from './plugins.ts'

export async function eventsReference(): Promise<string> {
	const { events } = declaredBy(await builtInPlugins())
	const families = [...Map.groupBy(events, ([type]) => type.split('.', 1)[0] as string)].toSorted(([a], [b]) =>
		a < b ? -1 : 1,
	)
	const contents = families.map(([name]) => `[${name}](#${name})`).join(' · ')
	const parts = families.map(([name, types]) => `## ${name}\n\n${types.map(described).join('\n\n')}\n`)
	return `${contents}\n\n${parts.join('\n')}`
}

function described([type, { description, payload }]: [string, EventType]): string {
	const rows = Object.entries(payload).map(([name, what]) => [
		name.endsWith('?') ? `${code(name.slice(0, -1))}, optional` : code(name),
		what,
	])
	const fields = rows.length > 0 ? table(['Field', ''], rows) : 'Its payload is empty.'
	return `### ${type}\n\n${description}\n\n${fields}`
}
