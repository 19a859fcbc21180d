/** Compares what is emitted with what the catalogue of events, and with it docs/events.md, says of it. */
import type { EventBus } from '../../core/events.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { catalogue } from '../../plugins/events/catalogue.ts'
import type { EventKind } from '../../plugins/events/catalogue.ts'

const kinds: Readonly<Record<string, EventKind>> = catalogue
const families = new Set(Object.keys(kinds).map(familyOf))

/** What of an event the documentation does not say, or says though it is not there. Empty: all is well. */
export function differences({ event_type, payload }: Pick<EventEnvelope, 'event_type' | 'payload'>): string[] {
	const kind = kinds[event_type]
	// A plugin of a test's own may tell what it likes, under a first word of its own.
	if (!kind) return families.has(familyOf(event_type)) ? [`${event_type} is not in the catalogue`] : []
	const documented = Object.keys(kind.payload)
	const unknown = Object.keys(payload).filter((name) => !(name in kind.payload) && !(`${name}?` in kind.payload))
	const absent = documented.filter((name) => !name.endsWith('?') && payload[name] === undefined)
	return [
		...unknown.map((name) => `${event_type} has the field "${name}", which the catalogue does not`),
		...absent.map((name) => `${event_type} has no "${name}", which the catalogue promises`),
	]
}

/** Listens until the answered function is called, which throws where an event was not as the catalogue says. */
export function watchEvents(events: Pick<EventBus, 'subscribe'>): () => void {
	const found = new Set<string>()
	const stop = events.subscribe({}, ({ event }) => {
		for (const difference of differences(event)) found.add(difference)
	})
	return () => {
		stop()
		if (found.size > 0) throw new Error(`plugins/events/catalogue.ts: ${[...found].join('; ')}`)
	}
}

function familyOf(type: string): string {
	return type.split('.', 1)[0] ?? ''
}
