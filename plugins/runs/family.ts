/**
 * Runs that a run started, and those that they started, are one family: `limits.tokens` holds for all of them together.
 * So however many sub-agents a model starts, a prompt costs no more than the agent may spend on one.
 */
import type { Usage } from '../../core/protocol.ts'
import type { Op, Store } from '../../core/store/ports.ts'
import type { RunRecord } from './contract.ts'
import { keys } from './keys.ts'
import { change } from './records.ts'

/** Tokens of each run of the family, by its id. Set, not added to, so that noting one twice counts once. */
interface Family {
	tokens: Record<string, number>
}

/** Notes what a run used by now, and answers with what the others of its family did; null where it has none. */
export function charge(store: Store, run: RunRecord, usage: Usage): Promise<number | null> {
	const place = keys.family(run.agent_uid, run.family ?? run.run_id)
	const used = usage.input_tokens + usage.output_tokens
	return change<number | null>(store, run.agent_uid, async () => {
		const entry = await store.get<Family>(place)
		if (!entry) return { ops: null, result: null }
		const { [run.run_id]: noted, ...others } = entry.value.tokens
		const result = Object.values(others).reduce((sum, tokens) => sum + tokens, 0)
		if (noted === used) return { ops: null, result }
		const value: Family = { tokens: { ...others, [run.run_id]: used } }
		return { ops: [{ key: place, value, expect: entry.rev }], result }
	})
}

/** What makes `child` a run of `parent`'s family: a change of the parent's record, and the family where it is new. */
export function adopt(parent: { value: RunRecord; rev: string }, child: string): { ops: Op[]; family: string } {
	const { agent_uid, run_id, children = [], family = run_id } = parent.value
	const value: RunRecord = { ...parent.value, family, children: [...children, child] }
	const ops: Op[] = [{ key: keys.run(agent_uid, run_id), value, expect: parent.rev }]
	if (parent.value.family === undefined)
		ops.push({ key: keys.family(agent_uid, run_id), value: { tokens: {} } satisfies Family, expect: null })
	return { ops, family }
}
