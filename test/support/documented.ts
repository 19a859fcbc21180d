/** Compares emitted events with the declarations of the plugins, from which docs/events.md is made. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { EventBus } from '../../core/events/event-bus.ts'
import { familyOf } from '../../core/events/families.ts'
import type { EventType } from '../../core/plugin.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { importOwn } from '../../core/util/own-code.ts'

export type EventTypes = ReadonlyMap<string, EventType>

/** Declarations of the built-in plugins. */
export const builtInTypes = await eventTypesIn(fileURLToPath(new URL('../../plugins', import.meta.url)))

/** Reads the declarations in `events.ts` or `events.js` of each plugin in a folder. */
export async function eventTypesIn(folder: string): Promise<EventTypes> {
	const files = existsSync(folder)
		? readdirSync(folder).flatMap((name) => ['ts', 'js'].map((end) => join(folder, name, `events.${end}`)))
		: []
	const modules = files.filter(existsSync).map((file) => importOwn(pathToFileURL(file)))
	const declared = (await Promise.all(modules)) as { default: Record<string, EventType> }[]
	return new Map(declared.flatMap(({ default: types }) => Object.entries(types)))
}

/** Lists undeclared fields of an event, and declared ones that are missing. Empty if the event is as declared. */
export function differences(
	{ event_type, payload }: Pick<EventEnvelope, 'event_type' | 'payload'>,
	types: EventTypes = builtInTypes,
): string[] {
	const type = types.get(event_type)
	// A plugin of a test may emit any event of a family that is not declared.
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

/** Checks events until the returned function is called, which throws if one was not as declared. `own`: types of third-party plugins. */
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
