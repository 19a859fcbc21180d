/**
 * The daily usage of callers with limits. It is stored in the scopes of the agents, so that it is counted in the commits of the
 * runs. When an agent is deleted, its records are moved to the plugin's own scope.
 */
import type { AgentRef } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import type { Key, Op, Store } from '../../core/store/ports.ts'
import { nothing, sumOf } from './budget.ts'
import type { Amount } from './budget.ts'

/** `starts`, or the slot of a run: concurrent runs should write different records, since writes of one record conflict. */
type CounterPart = 'starts' | number

/** The write that adds an amount to the caller's usage of this agent. */
export async function addOp(
	store: Pick<Store, 'get'>,
	{ uid }: AgentRef,
	{ day, caller, part }: { day: string; caller: string; part: CounterPart },
	amount: Amount,
): Promise<Op> {
	const key: Key = [agentScope(uid), 'caller-usage', day, caller, String(part)]
	const entry = await store.get<Amount>(key)
	return { key, value: sumOf([entry?.value ?? nothing, amount]), expect: entry?.rev ?? null }
}

/** The caller's usage of all agents on a day. */
export async function usedBy(
	store: Pick<Store, 'list'>,
	agents: AsyncIterable<AgentRef>,
	day: string,
	caller: string,
): Promise<Amount> {
	const amounts: Amount[] = []
	for await (const { value } of store.list<Amount>(['caller-usage', day, caller])) amounts.push(value)
	for await (const { uid } of agents)
		for await (const { value } of store.list<Amount>([agentScope(uid), 'caller-usage', day, caller]))
			amounts.push(value)
	return sumOf(amounts)
}
