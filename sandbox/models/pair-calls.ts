import { wireName } from '../../core/protocol.ts'
import type { ToolCallRequest } from '../../core/protocol.ts'

/**
 * Which call of a turn each call that a provider made has become: ids may have got an ending, and calls that went to somebody
 * else are left out.
 */
export function pairCalls(
	made: readonly { id: string; name: string }[],
	calls: readonly ToolCallRequest[],
): (ToolCallRequest | undefined)[] {
	let next = 0
	return made.map(({ id, name }) => {
		const call = calls[next]
		if (!call || !call.id.startsWith(id) || (wireName(call.name) !== name && call.name !== name)) return undefined
		next++
		return call
	})
}
