/** What is kept of servers, in the scope of their agent, so that all of it goes with the agent. */
import { Fault, isFault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { Entry, Key, Op } from '../../core/store/ports.ts'
import type { McpTransport } from './contract.ts'
import type { Pins } from './pins.ts'

export interface McpRecord {
	id: string
	name: string
	transport: McpTransport
	command?: string
	args?: string[]
	url?: string
	/** Names of `env` or `headers`, with the secret that the whole value is, or null. */
	names: Record<string, { secret: string } | null>
	/** The values, as JSON sealed by the vault; null where there are none. */
	values: Uint8Array | null
	/** The secrets in them. */
	secrets: string[]
	/** Added by somebody who may start any program and reach any address. */
	trusted: boolean
	enabled: boolean
	created_at: string
}

/** Names to ids, in the order in which servers were added: one record, so that two of a name or one too many cannot be. */
type Index = Record<string, string>

export interface Records {
	list(agent: AgentRef): Promise<McpRecord[]>
	/** Throws `already_exists`, or `conflict` where the agent has `limit` servers already. */
	add(agent: AgentRef, record: McpRecord, limit: number): Promise<void>
	/** Does nothing where it is gone already. */
	remove(agent: AgentRef, record: Pick<McpRecord, 'id' | 'name'>): Promise<void>
	/** Throws `not_found`. */
	enable(agent: AgentRef, id: string, enabled: boolean): Promise<McpRecord>
	pins(agent: AgentRef, id: string): Promise<Pins | undefined>
	/** Changes the pins of a server that is still there. `change` answers undefined for: leave them. */
	changePins(
		agent: AgentRef,
		id: string,
		change: (pins: Pins | undefined) => Pins | undefined,
	): Promise<Pins | undefined>
}

export function recordsOf(store: Context['store']): Records {
	const scopeOf = (agent: AgentRef): string => `agent:${agent.uid}`
	const indexKey = (agent: AgentRef): Key => [scopeOf(agent), 'mcp', 'index']
	const serverKey = (agent: AgentRef, id: string): Key => [scopeOf(agent), 'mcp', 'server', id]
	const pinsKey = (agent: AgentRef, id: string): Key => [scopeOf(agent), 'mcp', 'pins', id]

	/** Reads, decides and writes, again where somebody else was faster. */
	const decide = async <T>(agent: AgentRef, decision: () => Promise<{ ops: Op[]; result: T }>): Promise<T> => {
		for (;;) {
			const { ops, result } = await decision()
			if (ops.length === 0) return result
			try {
				await store.commit(scopeOf(agent), ops)
				return result
			} catch (error) {
				if (!isFault(error, 'conflict')) throw error
			}
		}
	}
	const indexOf = async (agent: AgentRef): Promise<{ index: Index; rev: Entry<Index>['rev'] | null }> => {
		const entry = await store.get<Index>(indexKey(agent))
		return { index: entry?.value ?? {}, rev: entry?.rev ?? null }
	}

	return {
		async list(agent) {
			const records: McpRecord[] = []
			for await (const { value } of store.list<McpRecord>([scopeOf(agent), 'mcp', 'server'])) records.push(value)
			return records // by id, which sorts by time
		},
		add: (agent, record, limit) =>
			decide(agent, async () => {
				const { index, rev } = await indexOf(agent)
				if (Object.hasOwn(index, record.name)) {
					throw new Fault(
						'already_exists',
						`${agent.name} has an MCP server "${record.name}" already; choose another name`,
					)
				}
				if (Object.keys(index).length >= limit) {
					throw new Fault('conflict', `${agent.name} has ${limit} MCP servers, as many as mcp.max_per_agent allows`)
				}
				const next = { ...index, [record.name]: record.id }
				return {
					ops: [
						{ key: indexKey(agent), value: next, expect: rev },
						{ key: serverKey(agent, record.id), value: record, expect: null },
					],
					result: undefined,
				}
			}),
		remove: (agent, { id, name }) =>
			decide(agent, async () => {
				const { index, rev } = await indexOf(agent)
				const { [name]: listed, ...others } = index
				const ops: Op[] = [
					{ key: serverKey(agent, id), value: undefined },
					{ key: pinsKey(agent, id), value: undefined },
				]
				if (listed === id) ops.push({ key: indexKey(agent), value: others, expect: rev })
				return { ops, result: undefined }
			}),
		enable: (agent, id, enabled) =>
			decide(agent, async () => {
				const entry = await store.get<McpRecord>(serverKey(agent, id))
				if (!entry) throw noServer(agent, id)
				const value = { ...entry.value, enabled }
				return { ops: [{ key: entry.key, value, expect: entry.rev }], result: value }
			}),
		pins: async (agent, id) => (await store.get<Pins>(pinsKey(agent, id)))?.value,
		changePins: (agent, id, change) =>
			decide(agent, async () => {
				const [server, entry] = await Promise.all([
					store.get<McpRecord>(serverKey(agent, id)),
					store.get<Pins>(pinsKey(agent, id)),
				])
				const next = server && change(entry?.value)
				if (!server || !next) return { ops: [], result: entry?.value }
				return {
					ops: [
						{ key: pinsKey(agent, id), value: next, expect: entry?.rev ?? null },
						// A removal meanwhile must not leave pins behind.
						{ key: server.key, value: server.value, expect: server.rev },
					],
					result: next,
				}
			}),
	}
}

export function noServer(agent: AgentRef, id: string): Fault {
	return new Fault('not_found', `${agent.name} has no MCP server "${id}"; GET /v1/agents/${agent.name}/mcp lists them`)
}
