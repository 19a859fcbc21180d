/**
 * A plugin that adds nothing: it keeps the servers of the newest generation, for `svc plugins check`. In plain JavaScript: the
 * loader imports it by its file, and below node_modules Node strips no types.
 */

// The loader imports this file once more, as a module of its own.
const key = Symbol.for('svc.check.servers')

/** All servers that a gateway of this process has made so far, with their routes. */
export function observed() {
	return globalThis[key] ?? []
}

export default {
	name: 'svc-check-observer',
	guard: (server) => void (globalThis[key] ??= []).push(server),
}
