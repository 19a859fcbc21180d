/**
 * A run and all runs below it form a family, which shares one `limits.tokens`. So a prompt costs no more than the limit of one
 * run, however many sub-agents its model starts.
 */
import type { Usage } from '../../core/protocol.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { change } from '../../core/store/change.ts'
import type { Decision } from '../../core/store/change.ts'
import type { Op, Store } from '../../core/store/ports.ts'
import type { RunRecord } from './contract.ts'
import type { JournalStep } from './journal-step.ts'
import { keys } from './keys.ts'

/** Tokens of each run of the family, by its id. Set, not added, so that recording twice counts once. */
interface Family {
	tokens: Record<string, number>
}

/** Records what a run has used so far, and returns the usage of the rest of its family; null if it has no family. */
export function charge(store: Store, run: RunRecord, usage: Usage): Promise<number | null> {
	return change(store, agentScope(run.agent_uid), () => chargeOps(store, run, usage))
}

/** The writes of `charge`, and its result. */
export async function chargeOps(store: Store, run: RunRecord, usage: Usage): Promise<Decision<number | null>> {
	const place = keys.family(run.agent_uid, run.family ?? run.run_id)
	const used = usage.input_tokens + usage.output_tokens
	const entry = await store.get<Family>(place)
	if (!entry) return { result: null }
	const { [run.run_id]: known, ...others } = entry.value.tokens
	const result = Object.values(others).reduce((sum, tokens) => sum + tokens, 0)
	if (known === used) return { result }
	const value: Family = { tokens: { ...others, [run.run_id]: used } }
	return { ops: [{ key: place, value, expect: entry.rev }], result }
}

/** Makes `child` a run of `parent`'s family: a change of the parent's record, and the family if it is new. */
export function adopt(parent: { value: RunRecord; rev: string }, child: string): { ops: Op[]; family: string } {
	const { agent_uid, run_id, children = [], family = run_id } = parent.value
	const value: RunRecord = { ...parent.value, family, children: [...children, child] }
	const ops: Op[] = [{ key: keys.run(agent_uid, run_id), value, expect: parent.rev }]
	if (parent.value.family === undefined)
		ops.push({ key: keys.family(agent_uid, run_id), value: { tokens: {} } satisfies Family, expect: null })
	return { ops, family }
}

export function mayHaveFamily({ family, children }: RunRecord, steps: readonly JournalStep[]): boolean {
	return family !== undefined || children !== undefined || hasActed(steps)
}

/** Whether a model has answered. Before its first answer, a run has no files and has not started other runs. */
export function hasActed(steps: readonly JournalStep[]): boolean {
	return steps.some(({ kind }) => kind === 'model')
}
