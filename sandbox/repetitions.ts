import type { Step } from '../core/protocol.ts'

/** How often the latest round of calls was made in a row, each time with the same results: 1 for once, 0 for no calls. */
export function repetitions(journal: readonly Step[]): number {
	let latest: string | undefined
	let count = 0
	/** Results after the model answer that is looked at, by call. */
	let results = new Map<string, string>()
	for (const step of journal.toReversed()) {
		if (step.kind === 'tool') results.set(step.call_id, JSON.stringify([step.ok, step.content]))
		if (step.kind !== 'model') continue
		const { tool_calls } = step.answer
		if (tool_calls.length === 0) return count
		const round = JSON.stringify(tool_calls.map(({ id, name, arguments: args }) => [name, args, results.get(id)]))
		if (latest !== undefined && round !== latest) return count
		latest = round
		count++
		results = new Map()
	}
	return count
}
