/** The connections of all agents. The connections of an agent are created from its records on first use. */
import type { AgentRef } from '../../core/plugin.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import type { ServerConnection } from './connection.ts'
import type { McpRecord, Records } from './records.ts'

/** By the server's id, in the order in which they were added. */
export type Connections = Map<string, ServerConnection>

export type ConnectionRegistry = ReturnType<typeof openConnectionRegistry>

/** Size of the cache of agents without servers. For agents beyond it, each run reads the store. */
const WITHOUT_SERVERS = 1_000

interface Loaded {
	connections: Connections
	loaded: Promise<Connections>
	/** The entry stays even if it has no connections. */
	isKept: boolean
}

export function openConnectionRegistry(
	records: Pick<Records, 'list'>,
	connectionTo: (agent: AgentRef, record: McpRecord) => Promise<ServerConnection>,
) {
	const registry = new Map<string, Loaded>()
	const without = new BoundedMap<string, true>(WITHOUT_SERVERS)
	let isClosed = false

	const load = (agent: AgentRef, forChange = false): Promise<Connections> => {
		const known = registry.get(agent.uid)
		if (known) {
			known.isKept ||= forChange
			return known.loaded
		}
		const connections: Connections = new Map()
		if (!forChange && without.get(agent.uid)) return Promise.resolve(connections)
		const entry: Loaded = { connections, loaded: Promise.resolve(connections), isKept: forChange }
		entry.loaded = (async () => {
			const made: ServerConnection[] = []
			for (const record of await records.list(agent)) made.push(await connectionTo(agent, record))
			// Start them only when all of them exist: after a failure, those already started would run beside their successors.
			const isGone = isClosed || registry.get(agent.uid) !== entry
			for (const connection of isGone ? [] : made) {
				connections.set(connection.record.id, connection)
				if (connection.record.enabled) void connection.start()
			}
			if (connections.size === 0 && !entry.isKept && !isGone) {
				registry.delete(agent.uid)
				without.set(agent.uid, true)
			}
			return connections
		})()
		entry.loaded.catch(() => registry.delete(agent.uid)) // the next request retries
		registry.set(agent.uid, entry)
		return entry.loaded
	}

	return {
		/**
		 * The servers of an agent. The first use connects those that are switched on. `forChange`: the caller may add to the map.
		 * Otherwise, the map of an agent without servers is not shared.
		 */
		of: load,
		/** The connections that are already loaded, without waiting. */
		*all(): Iterable<ServerConnection> {
			for (const { connections } of registry.values()) yield* connections.values()
		},
		/** Ends every connection of a deleted agent immediately. */
		async forget(uid: string): Promise<void> {
			const entry = registry.get(uid)
			if (!entry) return
			registry.delete(uid)
			await Promise.all([...entry.connections.values()].map((one) => one.dispose(true)))
		},
		async close(): Promise<void> {
			isClosed = true
			await Promise.all([...this.all()].map((one) => one.dispose()))
		},
	}
}
