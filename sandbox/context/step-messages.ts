/** Converts the steps of a run, and earlier messages, to turns of a request. */
import { isAnswer } from '../../core/protocol.ts'
import type { ChatMessage, Step } from '../../core/protocol.ts'
import type { Turn } from '../models/provider.ts'

type AnswerStep = Extract<Step, { kind: 'model' }>
type ResultStep = Extract<Step, { kind: 'tool' }>

/** `names`: the tool of each earlier call, by the id of the call. The calls of an answer are added. */
export function messageOf(step: AnswerStep | ResultStep, names: Map<string, string>): Exclude<Turn, { role: 'user' }> {
	if (step.kind === 'model') {
		const { content, tool_calls, reasoning, provider_state } = step.answer
		for (const { id, name } of tool_calls) names.set(id, name)
		const mind = { ...(reasoning !== undefined && { reasoning }), ...(provider_state && { provider_state }) }
		return { role: 'assistant', content, tool_calls, ...mind }
	}
	const { call_id, ok, content, attachments } = step
	return { role: 'tool', call_id, name: names.get(call_id) ?? '', ok, content, ...(attachments && { attachments }) }
}

/** The same steps with the results of each answer's calls in the order of the calls: concurrent calls end in any order. */
export function inOrderOfCalls<S extends { readonly kind: string }>(journal: readonly S[]): S[] {
	const ordered: S[] = []
	/** Where the results of the latest answer begin, and the positions of its calls. */
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

type Assistant<T extends { role: string }> = Extract<T, { role: 'assistant' }>

/** Returns the same object if it has calls: token counts and stubs are cached by object. */
export function withCalls(message: Assistant<ChatMessage>): Assistant<Turn> {
	const { tool_calls } = message
	return tool_calls ? (message as Assistant<Turn>) : { ...message, tool_calls: [] }
}
