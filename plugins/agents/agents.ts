import { Fault, isFault } from '../../core/errors.ts'
import { reaches, unknownAgent } from '../shared/agent-limit.ts'
import type { AgentLimit } from '../shared/agent-limit.ts'
import { newId, now } from '../../core/util/ids.ts'
import type { Context } from '../../core/plugin.ts'
import { agentScope, livenessKey } from '../../core/store/agent-scope.ts'
import { change } from '../../core/store/change.ts'
import { deleteAll } from '../shared/delete-all.ts'
import { merge } from '../shared/merge.ts'
import type { Entry } from '../../core/store/ports.ts'
import type { AgentConfig, AgentReader, AgentRecord, Agents, AgentsSettings } from './contract.ts'
import { rulingOn } from './tool-policy.ts'

const SCOPE = 'agents'
const CONFIG_LIMIT_BYTES = 64 * 1024

type AgentDeps = Pick<Context<AgentsSettings>, 'store' | 'emit' | 'extensions' | 'config'>

export interface RunningAgents extends Agents {
	/** Called at start: finishes deletions that a crash interrupted. */
	recover(): Promise<void>
}

export function agentsOf({ store, emit, extensions, config: { max_agents } }: AgentDeps): RunningAgents {
	const keyOf = (name: string) => [SCOPE, name] as const

	const entryOf = async (name: string): Promise<Entry<AgentRecord>> => {
		const entry = await store.getShared<AgentRecord>(keyOf(name))
		if (!entry || entry.value.deleting) throw unknownAgent(name)
		return entry
	}

	/** Agents that may be created before the next count. Deletions meanwhile only make more room. */
	let room = 0
	/** Concurrent requests may exceed the limit by their number. */
	const checkRoom = async (): Promise<void> => {
		if (room-- > 0) return
		let count = 0
		for await (const _ of store.keys([SCOPE])) {
			if (++count < max_agents) continue
			const message = `there are ${max_agents} agents already; delete one, or raise agents.max_agents`
			throw new Fault('conflict', message)
		}
		room = max_agents - count - 1
	}

	const changeRecord = (name: string, next: (agent: AgentRecord) => Promise<AgentRecord> | AgentRecord) =>
		change(store, SCOPE, async () => {
			const { key, value, rev } = await entryOf(name)
			const result = await next(value)
			return { ops: [{ key, value: result, expect: rev }], result }
		})

	/** Deletes everything of an agent that is marked as `deleting`. May be repeated: after a crash, the next start finds the mark. */
	const sweep = async (agent: AgentRecord): Promise<void> => {
		await store.delete(livenessKey(agent.uid)) // from now on nothing new can be stored for it
		for (const { value, run } of extensions('agent')) await run(() => value.forget?.(agent))
		await deleteAll(store, [agentScope(agent.uid)])
		await emit({ event_type: 'agent.deleted', payload: { uid: agent.uid } }, agent.name)
		await store.delete(keyOf(agent.name))
	}

	const agents: RunningAgents = {
		get: async (name) => (await entryOf(name)).value,
		async find(name) {
			const entry = await store.getShared<AgentRecord>(keyOf(name))
			return entry && !entry.value.deleting ? entry.value : undefined
		},
		async *list() {
			for await (const { value } of store.list<AgentRecord>([SCOPE])) if (!value.deleting) yield value
		},
		visibleTo: (caller) => (caller.agents ? visibleAgents(agents, caller) : agents),
		async create({ name, persona = null, config = {} }) {
			checkSize(config)
			if (!(await store.get(keyOf(name)))) await checkRoom()
			const record: AgentRecord = { name, uid: newId(), persona, config, created_at: now() }
			await store.put(livenessKey(record.uid), true)
			try {
				await store.create(keyOf(name), record)
			} catch (error) {
				if (!isFault(error, 'conflict')) throw error
				await store.delete(livenessKey(record.uid))
				throw new Fault('already_exists', `there is an agent "${name}" already; choose another name`, {
					hint: { route: 'PATCH /v1/agents/{name}', params: { name }, does: 'changes it' },
					cause: error,
				})
			}
			await emit(
				{ event_type: 'agent.created', payload: { persona: persona !== null, config: Object.keys(config) } },
				name,
			)
			return record
		},
		async update(name, fields, first) {
			const updated = await changeRecord(name, async (agent) => {
				const next: AgentRecord = {
					...agent,
					...(fields.persona !== undefined && { persona: fields.persona }),
					...(fields.config && { config: merge(agent.config, fields.config) }),
				}
				checkSize(next.config)
				await first?.(agent)
				return next
			})
			await emit({ event_type: 'agent.updated', payload: { fields: Object.keys(fields) } }, name)
			return updated
		},
		rulingOn,
		async remove(name) {
			await sweep(await changeRecord(name, (agent) => ({ ...agent, deleting: true })))
		},
		async recover() {
			for await (const { value } of store.list<AgentRecord>([SCOPE])) if (value.deleting) await sweep(value)
		},
	}
	return agents
}

function visibleAgents(agents: Agents, caller: AgentLimit): AgentReader {
	return {
		async get(name) {
			if (!reaches(caller, name)) throw unknownAgent(name)
			return agents.get(name)
		},
		find: async (name) => (reaches(caller, name) ? agents.find(name) : undefined),
		async *list() {
			for await (const agent of agents.list()) if (reaches(caller, agent.name)) yield agent
		},
	}
}

function checkSize(config: AgentConfig): void {
	const bytes = Buffer.byteLength(JSON.stringify(config))
	if (bytes > CONFIG_LIMIT_BYTES)
		throw new Fault('invalid_request', `config is ${bytes} bytes as JSON; at most ${CONFIG_LIMIT_BYTES} are allowed`)
}
