import { isAnswer } from '../../core/protocol.ts'
import type { Step } from '../../core/protocol.ts'

type ResultStep = Extract<Step, { kind: 'tool' }>

/** The same steps, of other kinds too, with the results of each answer's calls in the order of the calls: concurrent calls end in any order. */
export function inOrderOfCalls<S extends { readonly kind: string }>(journal: readonly S[]): S[] {
	const ordered: S[] = []
	/** Where the results of the latest answer stand, and the places of its calls. */
	let start = 0
	let places = new Map<string, number>()
	for (const step of journal) {
		ordered.push(step)
		if (isAnswer(step)) {
			start = ordered.length
			places = new Map(step.answer.tool_calls.map(({ id }, at) => [id, at]))
		}
		if (!isResult(step)) continue
		const place = places.get(step.call_id) ?? Infinity
		let at = ordered.length - 1
		for (let before = ordered[at - 1]; at > start && before; before = ordered[--at - 1]) {
			if (!isResult(before) || (places.get(before.call_id) ?? Infinity) <= place) break
			ordered[at] = before
		}
		ordered[at] = step
	}
	return ordered
}

function isResult(step: { readonly kind: string }): step is ResultStep {
	return step.kind === 'tool'
}
