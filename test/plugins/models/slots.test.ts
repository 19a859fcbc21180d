/** How many calls of a provider are made at the same time. */
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

/** Takes a slot; tells whether it has to wait, and when it got it. */
function take(slot: ReturnType<typeof slotsOf>, owner: string, until = signal) {
	const call = { waits: false, got: false, leave: (): void => {}, refused: undefined as unknown }
	const taken = slot('limited', owner, until, () => (call.waits = true))
	taken.then(
		(leave) => Object.assign(call, { got: true, leave }),
		(reason: unknown) => (call.refused = reason),
	)
	return call
}

void t.test('further calls wait, agents take turns, and a change of the limit holds at once', async (t) => {
	const slot = slotsOf(new Map([['limited', provider(1)]]))
	// In the same moment, as runs that begin together.
	const first = take(slot, 'ada')
	const [second, third, guest] = [take(slot, 'ada'), take(slot, 'ada'), take(slot, 'bob')]
	const stopped = new AbortController()
	const leaver = take(slot, 'eve', stopped.signal)
	await turn()
	t.match(first, { waits: false, got: true })
	t.match([second, third, guest, leaver], Array(4).fill({ waits: true, got: false }))
	stopped.abort('stopped')
	first.leave()
	first.leave()
	await turn()
	t.equal(leaver.refused, 'stopped')
	t.strictSame([second.got, third.got, guest.got], [true, false, false], 'one for the one that left')
	second.leave()
	await turn()
	t.strictSame([third.got, guest.got], [false, true])

	const changed = slotsOf(new Map([['limited', provider(2)]]))
	await turn()
	t.ok(third.got, 'those that wait already profit from a raised limit')
	const fourth = take(changed, 'ada')
	await turn()
	t.match(fourth, { waits: true, got: false }, 'calls from before a change count')
	slotsOf(new Map([['limited', provider()]]), Promise.withResolvers<void>().promise)
	await turn()
	t.notOk(fourth.got, 'settings that are not in force yet change nothing')
	const without = slotsOf(new Map([['limited', provider()]]))
	await turn()
	t.ok(fourth.got)
	t.ok((await slot('another', 'ada', signal, () => t.fail('it waits'))) instanceof Function)
	for (const { leave } of [third, guest, fourth]) leave()
	const last = take(without, 'ada')
	await turn()
	t.match(last, { waits: false, got: true })
	last.leave()
})
