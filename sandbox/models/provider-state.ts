/** Seals data that a provider must get back with its answer, and opens it only for the same provider and model. */
import { hash } from 'node:crypto'
import { fieldsOf } from '../../core/util/is-object.ts'
import type { ProviderState } from '../../core/protocol.ts'
import type { ModelOrder } from '../order.ts'
import type { Traits } from './traits.ts'

const DATA_LIMIT_BYTES = 256 * 1024

/** Undefined if it is too large: then the answer is sent back without it. */
export function sealState({ kind, provider, model }: ModelOrder, value: unknown): ProviderState | undefined {
	const data = JSON.stringify(value)
	if (Buffer.byteLength(data) > DATA_LIMIT_BYTES) return undefined
	return { kind, provider, model, data, digest: hash('sha256', data, 'base64url') }
}

/** Undefined if there is none for this model, or if it was changed after it was sealed. */
export function openState(
	{ kind, provider, model }: ModelOrder,
	{ provider_state: state }: { provider_state?: ProviderState },
): unknown {
	if (!state || state.kind !== kind || state.provider !== provider || state.model !== model) return undefined
	return state.digest === hash('sha256', state.data, 'base64url') ? JSON.parse(state.data) : undefined
}

/** The state to send back with an answer; empty if the answer has none, or if the server does not accept it. */
export function stateOf(
	order: ModelOrder,
	answer: { provider_state?: ProviderState },
	{ state }: Traits,
): Readonly<Record<string, unknown>> {
	return state === false ? {} : fieldsOf(openState(order, answer))
}
