/** The records of servers, in the scope of their agent, so that they are deleted with it. */
import { Fault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { changeRecord } from '../../core/store/change.ts'
import type { Key, Op } from '../../core/store/ports.ts'
import type { NewMcpServer } from './contract.ts'
import { loginKeys } from './login/stored-logins.ts'
import type { Pins } from './pins.ts'

export interface McpRecord extends Pick<
	NewMcpServer,
	'name' | 'transport' | 'command' | 'args' | 'url' | 'auth' | 'roots'
> {
	id: string
	/** Names of `env` or `headers`, each with the secret that is its complete value, or null. */
	names: Record<string, { secret: string } | null>
	/** The values, as JSON sealed by the vault; null if there are none. */
	values: Uint8Array | null
	/** The secrets in them, and in `url`. */
	secrets: string[]
	/** Whether the caller who added it may have values of secrets sent to it, in its settings or in the arguments of calls. */
	secrets_allowed: boolean
	/** Whether the caller who added it may start any program and reach any address. */
	trusted: boolean
	/** Absent: not allowed. */
	sampling?: true
	enabled: boolean
	created_at: string
}

/** Names to ids, in the order in which servers were added. One record, which enforces unique names and the limit. */
type Index = Record<string, string>

export type Records = ReturnType<typeof recordsOf>

export function serverKey(agent: AgentRef, id: string): Key {
	return [agentScope(agent.uid), 'mcp', 'server', id]
}

export function recordsOf(store: Context['store']) {
	const indexKey = (agent: AgentRef): Key => [agentScope(agent.uid), 'mcp', 'index']
	const pinsKey = (agent: AgentRef, id: string): Key => [agentScope(agent.uid), 'mcp', 'pins', id]

	return {
		/** By id, which sorts by time. */
		list: (agent: AgentRef): Promise<McpRecord[]> =>
			Array.fromAsync(store.list<McpRecord>([agentScope(agent.uid), 'mcp', 'server']), ({ value }) => value),
		/** Throws `already_exists`, or `conflict` if the agent already has `limit` servers. */
		add: (agent: AgentRef, record: McpRecord, limit: number): Promise<void> =>
			changeRecord<Index>(store, indexKey(agent), (index = {}) => {
				if (Object.hasOwn(index, record.name)) {
					throw new Fault(
						'already_exists',
						`${agent.name} already has an MCP server "${record.name}"; choose another name`,
					)
				}
				if (Object.keys(index).length >= limit) {
					throw new Fault('conflict', `${agent.name} has ${limit} MCP servers, which is the limit (mcp.max_per_agent)`)
				}
				return {
					next: { ...index, [record.name]: record.id },
					ops: [{ key: serverKey(agent, record.id), value: record, expect: null }],
					result: undefined,
				}
			}),
		/** Does nothing if it was removed before. */
		remove: (agent: AgentRef, { id, name }: Pick<McpRecord, 'id' | 'name'>): Promise<void> =>
			changeRecord<Index>(store, indexKey(agent), (index = {}) => {
				const { [name]: listed, ...others } = index
				const ops: Op[] = [
					{ key: serverKey(agent, id), value: undefined },
					{ key: pinsKey(agent, id), value: undefined },
					{ key: loginKeys.login(agent, id), value: undefined },
					{ key: loginKeys.pending(agent, id), value: undefined },
				]
				return { ops, next: listed === id ? others : undefined, result: undefined }
			}),
		/** Throws `not_found`. */
		enable: (agent: AgentRef, id: string, enabled: boolean): Promise<McpRecord> =>
			changeRecord<McpRecord, McpRecord>(store, serverKey(agent, id), (record) => {
				if (!record) throw noServer(agent, id)
				const next = { ...record, enabled }
				return { next, result: next }
			}),
		pins: async (agent: AgentRef, id: string): Promise<Pins | undefined> =>
			(await store.get<Pins>(pinsKey(agent, id)))?.value,
		/** Changes the pins of a server, unless it was removed. `next` returns undefined to leave them unchanged. */
		changePins: (
			agent: AgentRef,
			id: string,
			next: (pins: Pins | undefined) => Pins | undefined,
		): Promise<Pins | undefined> =>
			changeRecord<Pins, Pins | undefined>(store, pinsKey(agent, id), async (pins) => {
				const server = await store.get<McpRecord>(serverKey(agent, id))
				const value = server && next(pins)
				if (!server || !value) return { result: pins }
				return { next: value, ops: [{ key: server.key, check: true }], result: value } // pins must not outlive their server
			}),
	}
}

export function noServer(agent: AgentRef, id: string): Fault {
	const hint = { route: 'GET /v1/agents/{id}/mcp', params: { id: agent.name }, does: 'lists them' }
	return new Fault('not_found', `${agent.name} has no MCP server "${id}"`, { hint })
}
