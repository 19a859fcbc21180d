import { Fault } from '../../core/errors.ts'
import { reaches } from '../shared/agent-limit.ts'
import type { AgentLimit } from '../shared/agent-limit.ts'
import type { Context } from '../../core/plugin.ts'
import type {} from '../agents/contract.ts'
import type { Counted, UsageBy, UsageQuery, UsageReport, UsageRow } from './contract.ts'
import { addCounted, nothing } from './counted.ts'
import type { ModelRow } from './counted.ts'
import { entriesOf } from './ledger.ts'
import type { DayEntry } from './ledger.ts'
import { addRuns, figuresOf, noRuns } from './run-counts.ts'
import type { RunCounts } from './run-counts.ts'

/** Rows of a report: the largest. */
const ROWS_LIMIT = 1_000

/** Sums up the ledger. Days are in chronological order, other rows by cost and tokens, the largest first. */
export async function reportOf(
	{ store, use }: Pick<Context, 'store' | 'use'>,
	{ agent_id, since, until, by }: UsageQuery,
	caller: AgentLimit = {},
): Promise<UsageReport> {
	const rows = new Map<string, { row: UsageRow; runs: RunCounts }>()
	const total = nothing()
	const allRuns = noRuns()
	const rowFor = (labels: Partial<UsageRow>): { row: UsageRow; runs: RunCounts } => {
		const name = Object.values(labels).join('\n')
		const found = rows.get(name) ?? { row: { ...labels, ...nothing() }, runs: noRuns() }
		rows.set(name, found)
		return found
	}
	const agents = use('agents').visibleTo(caller)
	let known = agent_id === undefined
	const add = async (entries: AsyncIterable<DayEntry>): Promise<void> => {
		for await (const entry of entries) {
			if (!reaches(caller, entry.agent) || (agent_id !== undefined && entry.agent !== agent_id)) continue
			known = true
			for (const row of entry.rows) {
				addCounted(rowFor(labelsOf(by, entry, row)).row, row)
				addCounted(total, row)
			}
			if (!entry.runs) continue
			addRuns(allRuns, entry.runs)
			if (by !== 'model') addRuns(rowFor(labelsOf(by, entry)).runs, entry.runs)
		}
	}
	await add(entriesOf(store, undefined, { since, until }))
	if (agent_id === undefined) {
		for await (const { uid } of agents.list()) await add(entriesOf(store, uid, { since, until }))
	} else {
		const agent = await agents.find(agent_id)
		if (agent) await add(entriesOf(store, agent.uid, { since, until }))
		if (!agent && !known)
			throw new Fault('not_found', `there is no agent "${agent_id}", and there is no usage of an agent with that name`)
	}
	const all = [...rows.values()].map(({ row, runs }) => (by === 'model' ? row : { ...row, runs: figuresOf(runs) }))
	const sorted = all.toSorted(by === 'day' ? byDay : bySize)
	return { since, until, by, rows: sorted.slice(0, ROWS_LIMIT), total: { ...total, runs: figuresOf(allRuns) } }
}

/** `row`: of a model. */
function labelsOf(by: UsageBy, { agent, day }: DayEntry, row?: ModelRow): Partial<UsageRow> {
	if (by === 'model' && row) return { provider: row.provider, model: row.model }
	return by === 'agent' ? { agent_id: agent } : { day }
}

function byDay(a: UsageRow, b: UsageRow): number {
	return (a.day ?? '') < (b.day ?? '') ? -1 : 1
}

function bySize(a: Counted, b: Counted): number {
	const tokens = (row: Counted): number => row.input_tokens + row.output_tokens
	return (b.cost ?? 0) - (a.cost ?? 0) || tokens(b) - tokens(a)
}
