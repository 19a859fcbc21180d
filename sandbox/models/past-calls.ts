/** Earlier tool calls as they are sent back to a server. */
import { hash } from 'node:crypto'
import { fieldsOf, isObject } from '../../core/util/is-object.ts'
import { jsonIn } from '../../core/util/json-in.ts'
import { wireName } from '../wire-name.ts'
import type { ToolCallRequest } from '../../core/protocol.ts'
import type { Traits } from './traits.ts'
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

/** An id that every server accepts: Mistral requires 9 letters and digits, OpenAI at most 40 characters. */
const SHORT = /^[a-zA-Z0-9]{9}$/

/** The id of a call in the form that this server accepts. It may be from another provider, or from a client. */
export function callId(id: string, { short_ids }: Traits): string {
	return short_ids && !SHORT.test(id) ? hash('sha256', id, 'hex').slice(0, 9) : id
}

/** The arguments of a call; empty if they are not a JSON object. */
export function argumentsIn(text: string): Record<string, unknown> {
	return fieldsOf(jsonIn(text))
}

/** Some servers parse earlier calls, and refuse the whole conversation if the arguments of one are not a JSON object. */
export function parseable(args: string): string {
	return isObject(jsonIn(args)) ? args : '{}'
}
