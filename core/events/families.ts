/** Which event types a plugin may emit: the first words of the gateway's types are reserved, third-party plugins use others. */
import { messageOf, pluginInvalid } from '../errors.ts'
import type { NewEvent } from '../protocol.ts'
import { isObject } from '../util/is-object.ts'

/** First words reserved for the gateway, for all gateways of this process. */
const reserved = new Set<string>()

/** Keeps third-party plugins from emitting types that begin with these words. */
export function reserveFamilies(words: Iterable<string>): void {
	for (const word of words) reserved.add(word)
}

/** The first word of an event type. */
export function familyOf(type: string): string {
	return type.split('.', 1)[0] as string
}

/**
 * Copies a third-party plugin's event to plain data that the log never refuses: a refused event would keep its run from ending.
 * Throws `plugin_invalid` for a reserved type, and for a payload that is not a JSON object.
 */
export function pluginEvent(event: NewEvent, plugin: string): NewEvent {
	const event_type = event?.event_type
	checkEventType(event_type, plugin)
	try {
		const payload = JSON.parse(JSON.stringify(event.payload ?? {})) as unknown
		if (!isObject(payload)) throw new Error('it is not an object')
		return { ...event, event_type, payload }
	} catch (error) {
		throw pluginInvalid(
			`plugin "${plugin}": the payload of "${event_type.slice(0, 128)}" must be a JSON object: ${messageOf(error)}`,
			error,
		)
	}
}

/** Throws `plugin_invalid` if a third-party plugin may not emit this type. */
export function checkEventType(type: unknown, plugin: string): void {
	if (typeof type !== 'string') throw pluginInvalid(`plugin "${plugin}": an event needs an event_type`)
	const family = familyOf(type)
	if (!reserved.has(family)) return
	const prefix = reserved.has(plugin) ? `${plugin}-plugin` : plugin
	throw pluginInvalid(
		`plugin "${plugin}" cannot emit "${type.slice(0, 128)}": event types that begin with "${family}." are the gateway's own; begin yours with "${prefix}."`,
	)
}

type Emit = (event: NewEvent) => void

const unguardedEmits = new WeakMap<Emit, Emit>()

/** Wraps the `emit` of a call for a third-party plugin: it throws as `pluginEvent` does. */
export function guardedEmit(emit: Emit, plugin: string): Emit {
	const guarded: Emit = (event) => emit(pluginEvent(event, plugin))
	unguardedEmits.set(guarded, emit)
	return guarded
}

/** For a service of the gateway that emits its own events through its caller's `emit`. */
export function unguarded(emit: Emit): Emit {
	return unguardedEmits.get(emit) ?? emit
}
