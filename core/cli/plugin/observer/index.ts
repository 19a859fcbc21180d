/** A plugin that adds nothing: it keeps the servers of the newest generation, for `svc plugins check`. */
import type { Server } from '@hapi/hapi'
import type { Plugin } from '../../../plugin.ts'

// The loader imports this file once more, as a module of its own.
const key = Symbol.for('svc.check.servers')
const global = globalThis as { [key]?: Server[] }

export default {
	name: 'svc-check-observer',
	guard: (server) => void (global[key] ??= []).push(server),
} satisfies Plugin

/** All servers that a gateway of this process has made so far, with their routes. */
export function observed(): readonly Server[] {
	return global[key] ?? []
}
