/**
 * What a session needs to continue after a restart of the gateway or a change of its settings. By the protocol, a client whose
 * session is gone opens another one; most clients fail instead, until somebody restarts them.
 */
import { hash } from 'node:crypto'
import type { Context } from '../../core/plugin.ts'
import type { Key } from '../../core/store/ports.ts'

export interface KeptSession {
	owner: string
	conversation: string
	/** The `params` of the client's `initialize`. */
	initialize: unknown
}

const ALL: Key = ['mcp-server', 'session']
/** Larger descriptions of clients are not kept; one of a common client has some hundred characters. */
const INITIALIZE_CHARACTERS = 4_096

export function keptSessions({ store, log }: Pick<Context, 'store' | 'log'>) {
	return {
		async find(id: string): Promise<KeptSession | undefined> {
			return (await store.get<KeptSession>(keyOf(id)))?.value
		},
		/** Without it, the session works, and ends with this instance of the plugin. */
		async keep(id: string, session: KeptSession): Promise<void> {
			if (JSON.stringify(session.initialize).length > INITIALIZE_CHARACTERS) return
			await store
				.put(keyOf(id), session)
				.catch((error: unknown) => log.warn({ err: error }, 'an MCP session will not continue after a restart'))
		},
		forget(id: string): void {
			store
				.delete(keyOf(id))
				.catch((error: unknown) => log.debug({ err: error }, 'a record of an ended MCP session stays for now'))
		},
		/** Forgets all but these, and but `limit` others. */
		async forgetOthers(ids: Iterable<string>, limit: number): Promise<void> {
			const own = new Set(Array.from(ids, (id) => keyOf(id).join('\n')))
			let others = 0
			for await (const key of store.keys(ALL)) if (!own.has(key.join('\n')) && ++others > limit) await store.delete(key)
		},
	}
}

/** By a hash: whoever reads the store, or a backup, cannot use a session. */
function keyOf(id: string): Key {
	return [...ALL, hash('sha256', id)]
}
