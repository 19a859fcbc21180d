/** Compares what is emitted with what the plugins declare, and with it docs/events.md. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { EventBus } from '../../core/events/event-bus.ts'
import { familyOf } from '../../core/events/families.ts'
import type { EventType } from '../../core/plugin.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { importOwn } from '../../core/util/own-code.ts'

export type EventTypes = ReadonlyMap<string, EventType>

/** Those of the built-in plugins. */
export const builtInTypes = await eventTypesIn(fileURLToPath(new URL('../../plugins', import.meta.url)))

/** What the `events.ts` or `events.js` of each plugin in a folder declares. */
export async function eventTypesIn(folder: string): Promise<EventTypes> {
	const files = existsSync(folder)
		? readdirSync(folder).flatMap((name) => ['ts', 'js'].map((end) => join(folder, name, `events.${end}`)))
		: []
	const modules = files.filter(existsSync).map((file) => importOwn(pathToFileURL(file)))
	const declared = (await Promise.all(modules)) as { default: Record<string, EventType> }[]
	return new Map(declared.flatMap(({ default: types }) => Object.entries(types)))
}

/** What of an event is not declared, or is declared though it is not there. Empty: all is well. */
export function differences(
	{ event_type, payload }: Pick<EventEnvelope, 'event_type' | 'payload'>,
	types: EventTypes = builtInTypes,
): string[] {
	const type = types.get(event_type)
	// A plugin of a test's own may emit what it likes, under a first word that nobody declares.
	if (!type) {
		const isOwned = [...types.keys()].some((one) => familyOf(one) === familyOf(event_type))
		return isOwned ? [`${event_type} is not declared`] : []
	}
	const declared = new Set(['actor', ...Object.keys(type.payload).map((name) => name.replace(/\?$/, ''))])
	const unknown = Object.keys(payload).filter((name) => !declared.has(name))
	const absent = Object.keys(type.payload).filter((name) => !name.endsWith('?') && payload[name] === undefined)
	return [
		...unknown.map((name) => `${event_type} has the field "${name}", which is not declared`),
		...absent.map((name) => `${event_type} has no "${name}", which is declared`),
	]
}

/** Listens until the returned function is called, which throws where an event was not as declared. `own`: types of third parties. */
export function watchEvents(events: Pick<EventBus, 'subscribe'>, own: EventTypes): () => void {
	const types = new Map([...builtInTypes, ...own])
	const found = new Set<string>()
	const stop = events.subscribe({}, ({ event }) => {
		for (const difference of differences(event, types)) found.add(difference)
	})
	return () => {
		stop()
		if (found.size > 0) throw new Error(`events.ts of a plugin: ${[...found].join('; ')}`)
	}
}
