/**
 * The scope of everything that belongs to one agent. Its liveness record exists as long as the agent: it is written before
 * the agent can be found, and removed before the other records. Every commit that adds a record expects it, so work that was
 * in progress when the agent was deleted leaves nothing behind.
 */
import { Fault, isFault } from '../errors.ts'
import { withSingleWrites } from './ops.ts'
import type { Engine, Key, Op, RecordChange, Rev, Store } from './ports.ts'

const PREFIX = 'agent:'
const ALIVE = 'alive'

/** The scope of the agent with this uid. */
export function agentScope(uid: string): string {
	return `${PREFIX}${uid}`
}

/** The uid of the agent to which the scope belongs; undefined for any other scope. */
export function agentIn(scope: string): string | undefined {
	return scope.startsWith(PREFIX) ? scope.slice(PREFIX.length) : undefined
}

/** The key of the agent's liveness record. */
export function livenessKey(uid: string): Key {
	return [agentScope(uid), ALIVE]
}

/** The agents that are not being deleted, by name. */
export async function* agentsIn(store: Pick<Store, 'list'>): AsyncGenerator<{ name: string; uid: string }> {
	for await (const { value } of store.list<{ name: string; uid: string; deleting?: boolean }>(['agents']))
		if (!value.deleting) yield value
}

/**
 * Wraps the store and the log for all callers: a write in the scope of an agent that does not exist, or was deleted, throws
 * `not_found` and writes nothing. A commit that only deletes records, or updates them at a revision that was read, is
 * exempt: the deletion of the agent removes these records. So the runs of a deleted agent can still be ended.
 */
export function expectingAgents({ store, log }: Pick<Engine, 'store' | 'log'>): Pick<Engine, 'store' | 'log'> {
	const mustExist = async (scope: string): Promise<void> => {
		if (!(await store.get([scope, ALIVE])))
			throw new Fault('not_found', 'the agent was deleted, so nothing more is stored for it')
	}
	const expecting = (scope: string, ops: Op[]): Op[] => [...ops, { key: [scope, ALIVE], check: true }]

	const commit = async (scope: string, ops: Op[]): Promise<Rev[]> => {
		if (!needsAgent(scope, ops)) return store.commit(scope, ops)
		try {
			return await store.commit(scope, expecting(scope, ops))
		} catch (error) {
			if (isFault(error, 'conflict')) await mustExist(scope)
			throw error
		}
	}
	const checked = ({ scope, ops }: RecordChange): RecordChange => {
		/** Whether an earlier attempt needed the agent. Its conflict may mean that the agent was deleted. */
		let needed = false
		return {
			scope,
			async ops() {
				const wanted = await ops().catch(async (error: unknown) => {
					if (needed) await mustExist(scope)
					throw error
				})
				const needs = needsAgent(scope, wanted)
				if (needs && needed) await mustExist(scope)
				needed = needs
				return needs ? expecting(scope, wanted) : wanted
			},
		}
	}
	return {
		store: withSingleWrites({ ...store, commit }),
		log: {
			...log,
			append: (run, expectedLast, entries, change) => log.append(run, expectedLast, entries, change && checked(change)),
		},
	}
}

function needsAgent(scope: string, ops: readonly Op[]): boolean {
	if (agentIn(scope) === undefined) return false
	const mayAdd = ops.some(({ value, expect }) => value !== undefined && typeof expect !== 'string')
	return mayAdd && !ops.some(({ key }) => key.length === 2 && key[1] === ALIVE)
}
