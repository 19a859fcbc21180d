/**
 * Stores what a session needs to continue after a restart of the gateway or a change of its settings. According to the protocol, a
 * client whose session was lost opens another one. But most clients fail until somebody restarts them.
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
/** Larger `params` are not kept. Those of common clients have a few hundred characters. */
const INITIALIZE_CHARACTERS = 4_096

export function keptSessions({ store, log }: Pick<Context, 'store' | 'log'>) {
	const remains = (error: unknown): void =>
		log.debug({ err: error }, 'records of ended MCP sessions could not be deleted; a later start deletes them')
	return {
		async find(id: string): Promise<KeptSession | undefined> {
			return (await store.get<KeptSession>(keyOf(id)))?.value
		},
		/** If this fails, the session works, but ends with this instance of the plugin. */
		async keep(id: string, session: KeptSession): Promise<void> {
			if (JSON.stringify(session.initialize).length > INITIALIZE_CHARACTERS) return
			await store
				.put(keyOf(id), session)
				.catch((error: unknown) => log.warn({ err: error }, 'an MCP session will not continue after a restart'))
		},
		forget(id: string): void {
			store.delete(keyOf(id)).catch(remains)
		},
		/** Forgets all sessions except these and `limit` others. Never rejects. */
		async forgetOthers(ids: Iterable<string>, limit: number): Promise<void> {
			const own = new Set(Array.from(ids, (id) => keyOf(id).join('\n')))
			let others = 0
			try {
				for await (const key of store.keys(ALL))
					if (!own.has(key.join('\n')) && ++others > limit) await store.delete(key)
			} catch (error) {
				remains(error)
			}
		},
	}
}

/** Contains a hash of the id, so that a reader of the store or of a backup cannot use the session. */
function keyOf(id: string): Key {
	return [...ALL, hash('sha256', id)]
}
