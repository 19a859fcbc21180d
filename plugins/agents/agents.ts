import { Fault, isFault } from '../../core/errors.ts'
import { newId, now } from '../../core/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { Entry, Op } from '../../core/store/ports.ts'
import type { AgentConfig, AgentRecord, Agents } from './contract.ts'
import type {} from '../runs/contract.ts'

const SCOPE = 'agents'
const CONFIG_LIMIT_BYTES = 64 * 1024
const COMMIT_LIMIT = 100

type Services = Pick<Context, 'store' | 'emit' | 'find'>

export function agentsOf({ store, emit, find }: Services): Agents & { finishDeletions(): Promise<void> } {
	const keyOf = (name: string) => [SCOPE, name] as const

	const entryOf = async (name: string): Promise<Entry<AgentRecord>> => {
		const entry = await store.get<AgentRecord>(keyOf(name))
		if (!entry || entry.value.deleting)
			throw new Fault('not_found', `there is no agent "${name}"; POST /v1/agents creates one`)
		return entry
	}

	/** May be repeated at any point: a crash leaves the mark, and the next start goes on from here. */
	const sweep = async (agent: AgentRecord): Promise<void> => {
		await find('runs')?.forgetAgent(agent)
		const scope = scopeOf(agent)
		let ops: Op[] = []
		const flush = async (): Promise<void> => {
			if (ops.length > 0) await store.commit(scope, ops)
			ops = []
		}
		for await (const { key } of store.list([scope])) {
			ops.push({ key, value: undefined })
			if (ops.length === COMMIT_LIMIT) await flush()
		}
		await flush()
		await emit({ event_type: 'agent.deleted', payload: { uid: agent.uid } }, agent.name)
		await store.delete(keyOf(agent.name))
	}

	return {
		get: async (name) => (await entryOf(name)).value,
		async find(name) {
			const entry = await store.get<AgentRecord>(keyOf(name))
			return entry && !entry.value.deleting ? entry.value : undefined
		},
		async *list() {
			for await (const { value } of store.list<AgentRecord>([SCOPE])) if (!value.deleting) yield value
		},
		async create({ name, persona = null, config = {} }) {
			checkSize(config)
			const record: AgentRecord = { name, uid: newId(), persona, config, created_at: now() }
			try {
				await store.create(keyOf(name), record)
			} catch (error) {
				if (!isFault(error, 'conflict')) throw error
				throw new Fault(
					'already_exists',
					`there is an agent "${name}" already; choose another name, or PATCH /v1/agents/${name} to change it`,
					{ cause: error },
				)
			}
			await emit(
				{ event_type: 'agent.created', payload: { persona: persona !== null, config: Object.keys(config) } },
				name,
			)
			return record
		},
		async update(name, change, first) {
			for (;;) {
				const { value, rev } = await entryOf(name)
				const next: AgentRecord = {
					...value,
					...(change.persona !== undefined && { persona: change.persona }),
					...(change.config && { config: merge(value.config, change.config) }),
				}
				checkSize(next.config)
				await first?.(value)
				try {
					await store.update(keyOf(name), next, rev)
				} catch (error) {
					if (isFault(error, 'conflict')) continue // somebody else was faster, and got on with it
					throw error
				}
				await emit({ event_type: 'agent.updated', payload: { fields: Object.keys(change) } }, name)
				return next
			}
		},
		async remove(name) {
			const { value, rev } = await entryOf(name)
			const marked: AgentRecord = { ...value, deleting: true }
			try {
				await store.update(keyOf(name), marked, rev)
			} catch (error) {
				if (isFault(error, 'conflict')) return this.remove(name)
				throw error
			}
			await sweep(marked)
		},
		async finishDeletions() {
			for await (const { value } of store.list<AgentRecord>([SCOPE])) if (value.deleting) await sweep(value)
		},
	}
}

/** The scope of everything that is an agent's own. */
function scopeOf(agent: AgentRef): string {
	return `agent:${agent.uid}`
}

function merge(config: AgentConfig, change: Record<string, unknown>): AgentConfig {
	return Object.fromEntries(Object.entries({ ...config, ...change }).filter(([, value]) => value !== null))
}

function checkSize(config: AgentConfig): void {
	const bytes = Buffer.byteLength(JSON.stringify(config))
	if (bytes > CONFIG_LIMIT_BYTES)
		throw new Fault('invalid_request', `config is ${bytes} bytes as JSON; at most ${CONFIG_LIMIT_BYTES} are kept`)
}
