import { wireName } from '../wire-name.ts'
import type { ToolCallRequest } from '../../core/protocol.ts'
import { stringIn } from './values.ts'

/**
 * Which call of a turn each call that a provider made has become: ids may have got an ending, and calls that went to somebody
 * else are left out. Undefined where a call of the turn has none: then the state of the provider is not that of the turn.
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
