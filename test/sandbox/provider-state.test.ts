import t from 'tap'
import type { ModelOrder } from '../../sandbox/order.ts'
import { openState, sealState } from '../../sandbox/models/provider-state.ts'

const order: ModelOrder = { provider: 'p', kind: 'anthropic', model: 'm', timeout_ms: 1_000 }
const value = { content: [{ type: 'thinking', thinking: 'The key is hunter2.', signature: 's' }] }

void t.test('provider state is sent back to the same kind, provider and model only', (t) => {
	const provider_state = sealState(order, value)
	if (!provider_state) throw new Error('the state was not sealed')
	t.strictSame(openState(order, { provider_state }), value)
	t.equal(openState({ ...order, provider: 'q' }, { provider_state }), undefined)
	t.equal(openState({ ...order, model: 'n' }, { provider_state }), undefined)
	t.equal(openState({ ...order, kind: 'openai' }, { provider_state }), undefined)
	t.equal(openState(order, {}), undefined, 'an answer of version 0.1.0 has none')
	t.end()
})

void t.test('provider state with a redacted secret is not sent back', (t) => {
	const sealed = sealState(order, value)
	if (!sealed) throw new Error('the state was not sealed')
	const provider_state = { ...sealed, data: sealed.data.replace('hunter2', '[redacted:KEY]') }
	t.equal(openState(order, { provider_state }), undefined)
	t.end()
})

void t.test('provider state of more than 256 KiB is not stored', (t) => {
	t.ok(sealState(order, 'x'.repeat(256 * 1024 - 2)))
	t.equal(sealState(order, 'x'.repeat(256 * 1024 - 1)), undefined)
	t.equal(sealState(order, '…'.repeat(90 * 1024)), undefined, 'the limit is in bytes, not characters')
	t.end()
})
