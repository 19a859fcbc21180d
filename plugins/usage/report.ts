import { Fault } from '../../core/errors.ts'
import { reaches } from '../../core/http/agents.ts'
import type { AgentLimit } from '../../core/http/agents.ts'
import type { Context } from '../../core/plugin.ts'
import type {} from '../agents/contract.ts'
import type { Counted, UsageBy, UsageQuery, UsageReport, UsageRow } from './contract.ts'
import { addCounted, nothing } from './counted.ts'
import type { ModelRow } from './counted.ts'
import { entriesOf, keptEntries } from './ledger.ts'
import type { DayEntry } from './ledger.ts'

/** Rows of a report: the largest. */
const ROWS_LIMIT = 1_000

/** Sums up the ledger. Days are in order, other rows by their cost and tokens, the largest first. */
export async function reportOf(
	{ store, use }: Pick<Context, 'store' | 'use'>,
	{ agent_id, since, until, by }: UsageQuery,
	caller: AgentLimit = {},
): Promise<UsageReport> {
	const rows = new Map<string, UsageRow>()
	const total = nothing()
	const agents = use('agents').visibleTo(caller)
	let known = agent_id === undefined
	const add = async (entries: AsyncIterable<DayEntry>): Promise<void> => {
		for await (const entry of entries) {
			if (!reaches(caller, entry.agent) || (agent_id !== undefined && entry.agent !== agent_id)) continue
			known = true
			for (const row of entry.rows) {
				const labels = labelsOf(by, entry, row)
				const name = Object.values(labels).join('\n')
				const sum = rows.get(name) ?? { ...labels, ...nothing() }
				rows.set(name, sum)
				addCounted(sum, row)
				addCounted(total, row)
			}
		}
	}
	await add(keptEntries(store, { since, until }))
	if (agent_id === undefined) {
		for await (const { uid } of agents.list()) await add(entriesOf(store, uid, { since, until }))
	} else {
		const agent = await agents.find(agent_id)
		if (agent) await add(entriesOf(store, agent.uid, { since, until }))
		if (!agent && !known)
			throw new Fault('not_found', `there is no agent "${agent_id}", and none of that name was used`)
	}
	const sorted = [...rows.values()].toSorted(by === 'day' ? byDay : bySize)
	return { since, until, by, rows: sorted.slice(0, ROWS_LIMIT), total }
}

function labelsOf(by: UsageBy, { agent, day }: DayEntry, { provider, model }: ModelRow): Partial<UsageRow> {
	if (by === 'agent') return { agent_id: agent }
	return by === 'day' ? { day } : { provider, model }
}

function byDay(a: UsageRow, b: UsageRow): number {
	return (a.day ?? '') < (b.day ?? '') ? -1 : 1
}

function bySize(a: Counted, b: Counted): number {
	const tokens = (row: Counted): number => row.input_tokens + row.output_tokens
	return (b.cost ?? 0) - (a.cost ?? 0) || tokens(b) - tokens(a)
}
