/** The limit of simultaneous calls of a provider. */
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import type { Provider } from '../../../plugins/models/contract.ts'
import { slotsOf } from '../../../plugins/models/slots.ts'

const provider = (most?: number): Provider => ({
	kind: 'openai',
	model: 'm',
	...(most !== undefined && { max_concurrent_calls: most }),
})
const { signal } = new AbortController()

/** Requests a slot. The result shows whether it waits, has the slot, or was refused. */
function take(slot: ReturnType<typeof slotsOf>, owner: string, until = signal) {
	const call = { waits: false, got: false, leave: (): void => {}, refused: undefined as unknown }
	const taken = slot('limited', owner, until, () => (call.waits = true))
	taken.then(
		(leave) => Object.assign(call, { got: true, leave }),
		(reason: unknown) => (call.refused = reason),
	)
	return call
}

void t.test('further calls wait, agents take turns, and a changed limit applies at once', async (t) => {
	const slot = slotsOf(new Map([['limited', provider(1)]]))
	// At the same time, like runs that start together.
	const first = take(slot, 'ada')
	const [second, third, ofBob] = [take(slot, 'ada'), take(slot, 'ada'), take(slot, 'bob')]
	const stopped = new AbortController()
	const cancelled = take(slot, 'eve', stopped.signal)
	await turn()
	t.match(first, { waits: false, got: true })
	t.match([second, third, ofBob, cancelled], Array(4).fill({ waits: true, got: false }))
	stopped.abort('stopped')
	first.leave()
	first.leave()
	await turn()
	t.equal(cancelled.refused, 'stopped')
	t.strictSame([second.got, third.got, ofBob.got], [true, false, false], 'a slot that is released twice is given once')
	second.leave()
	await turn()
	t.strictSame([third.got, ofBob.got], [false, true])

	const changed = slotsOf(new Map([['limited', provider(2)]]))
	await turn()
	t.ok(third.got, 'a raised limit applies to calls that wait')
	const fourth = take(changed, 'ada')
	await turn()
	t.match(fourth, { waits: true, got: false }, 'calls from before a change count')
	slotsOf(new Map([['limited', provider()]]), Promise.withResolvers<void>().promise)
	await turn()
	t.notOk(fourth.got, 'settings that are not active yet change nothing')
	const without = slotsOf(new Map([['limited', provider()]]))
	await turn()
	t.ok(fourth.got)
	t.ok((await slot('another', 'ada', signal, () => t.fail('it waits'))) instanceof Function)
	for (const { leave } of [third, ofBob, fourth]) leave()
	const last = take(without, 'ada')
	await turn()
	t.match(last, { waits: false, got: true })
	last.leave()
})
