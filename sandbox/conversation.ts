import type { RunOrder, Step, ToolCallRequest } from '../core/protocol.ts'
import type { Turn } from './models/provider.ts'

/** The whole conversation as it stands after the given steps: earlier turns, the prompt, and what the run did so far. */
export function conversationOf(order: RunOrder, journal: readonly Step[]): Turn[] {
	const turns: Turn[] = order.history.map(({ role, content }) =>
		role === 'user' ? { role, content } : { role, content, tool_calls: [] },
	)
	turns.push({ role: 'user', content: order.prompt })
	const names = new Map<string, string>()
	for (const step of journal) {
		if (step.kind === 'model') {
			const { content, tool_calls } = step.answer
			for (const call of tool_calls) names.set(call.id, call.name)
			turns.push({ role: 'assistant', content, tool_calls })
		} else {
			const { call_id, ok, content } = step
			turns.push({ role: 'tool', call_id, name: names.get(call_id) ?? '', ok, content })
		}
	}
	return turns
}

/** The first call of the latest model answer that has no result yet. */
export function nextCall(journal: readonly Step[]): ToolCallRequest | undefined {
	const finished = new Set<string>()
	for (const step of journal.toReversed()) {
		if (step.kind === 'model') return step.answer.tool_calls.find((call) => !finished.has(call.id))
		finished.add(step.call_id)
	}
	return undefined
}

/** Some servers number the calls of every answer anew; a result must say to which call of the run it belongs. */
export function withUniqueIds(calls: ToolCallRequest[], journal: readonly Step[]): ToolCallRequest[] {
	const taken = new Set<string>()
	let answers = 0
	for (const step of journal) {
		if (step.kind !== 'model') continue
		answers++
		for (const call of step.answer.tool_calls) taken.add(call.id)
	}
	return calls.map((call, at) => {
		let { id } = call
		if (id === '') id = `call_${answers + 1}_${at + 1}`
		for (let n = 2; taken.has(id); n++) id = `${call.id || 'call'}_${answers + 1}_${at + 1}${n > 2 ? `_${n}` : ''}`
		taken.add(id)
		return id === call.id ? call : { ...call, id }
	})
}
