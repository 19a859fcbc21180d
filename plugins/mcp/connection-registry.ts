/** The connections of all agents. Those of an agent are loaded from its records at their first use. */
import type { AgentRef } from '../../core/plugin.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import type { ServerConnection } from './connection.ts'
import type { McpRecord, Records } from './records.ts'

/** By the server's id, in the order in which they were added. */
export type Connections = Map<string, ServerConnection>

export type ConnectionRegistry = ReturnType<typeof openConnectionRegistry>

/** Agents known to have no servers. For others without servers, each run reads the store. */
const WITHOUT_SERVERS = 1_000

interface Loaded {
	connections: Connections
	loaded: Promise<Connections>
	/** It stays even if it is empty. */
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
			// Only now can nothing fail any more: one that was started and then forgotten would run beside its successor.
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
		 * The servers of an agent; at the first use, connects those that are switched on. `forChange`: the caller may add to them;
		 * else those of an agent that has none are a copy.
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
