/**
 * A plugin that adds nothing: it keeps the servers and the extensions of the newest generation, for `svc plugins check`. In plain JavaScript: the
 * loader imports it by its file, and below node_modules Node strips no types.
 */

// The loader imports this file once more, as a module of its own.
const key = Symbol.for('svc.check.servers')
const extensionsKey = Symbol.for('svc.check.extensions')

/** All servers that a gateway of this process has made so far, with their routes. */
export function observed() {
	return globalThis[key] ?? []
}

/** What plugins add at an extension point of the newest gateway. */
export function observedExtensions(point) {
	return globalThis[extensionsKey]?.(point) ?? []
}

export default {
	name: 'svc-check-observer',
	start: (ctx) => void (globalThis[extensionsKey] = ctx.extensions),
	guard: (server) => void (globalThis[key] ??= []).push(server),
}
