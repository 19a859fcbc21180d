import { wireName } from '../wire-name.ts'
import type { ToolCallRequest } from '../../core/protocol.ts'
import { stringIn } from './values.ts'

/**
 * Maps the calls in a provider's state to the calls of the turn. The ids of the turn may have a suffix, and calls that were not made
 * by the gateway are missing there. Undefined if a call of the turn has no match: then the state does not belong to the turn.
 */
export function pairCalls(
	made: readonly Readonly<{ id?: unknown; name?: unknown }>[],
	calls: readonly ToolCallRequest[],
): (ToolCallRequest | undefined)[] | undefined {
	let next = 0
	const pairs = made.map(({ id, name }) => {
		const call = calls[next]
		if (!call || !isOf(call, stringIn(id)) || (wireName(call.name) !== name && call.name !== name)) return undefined
		next++
		return call
	})
	return next === calls.length ? pairs : undefined
}

function isOf(call: ToolCallRequest, id: string): boolean {
	return id === '' || call.id === id || call.id.startsWith(`${id}_`)
}
