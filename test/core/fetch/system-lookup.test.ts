import t from 'tap'
import { openSystemLookup } from '../../../core/fetch/system-lookup.ts'
import type { ResolvedAddress } from '../../../core/fetch/system-lookup.ts'

void t.test('an agent whose name servers are silent does not block other agents', async (t) => {
	const pending = new Map<string, PromiseWithResolvers<ResolvedAddress[]>>()
	const answer = [{ address: '192.0.2.1', family: 4 }]
	let areNamesUnknown = false
	const lookup = openSystemLookup((host) => {
		if (areNamesUnknown) return Promise.reject(new Error('no such name'))
		const answered = Promise.withResolvers<ResolvedAddress[]>()
		pending.set(host, answered)
		return answered.promise
	})
	const flood = [lookup('a0', 'a'), lookup('a1', 'a')]
	await new Promise((resolve) => setImmediate(resolve))
	for (let n = 2; n < 258; n++) flood.push(lookup(`a${n}`, 'a'))
	await t.rejects(lookup('a258', 'a'), { code: 'fetch_failed', message: /^256 names that this agent asked for wait/ })
	const other = lookup('b', 'b')
	await new Promise((resolve) => setImmediate(resolve))
	const own = lookup('own')
	await new Promise((resolve) => setImmediate(resolve))
	t.strictSame([...pending.keys()], ['a0', 'a1', 'b'], 'two at a time, and one in reserve')
	pending.get('b')?.resolve(answer)
	t.strictSame(await other, answer)
	await new Promise((resolve) => setImmediate(resolve))
	t.ok(pending.has('own'), 'the next owner gets the reserve')
	pending.get('own')?.resolve(answer)
	t.strictSame(await own, answer)
	// In any order: the pace lets later names go first if this process was not running for a moment between their requests.
	const ended = Promise.allSettled(flood)
	areNamesUnknown = true
	for (const { reject } of pending.values()) reject(new Error('no such name'))
	const outcomes = (await ended).map((one) => one.status === 'rejected' && String(one.reason))
	t.strictSame(outcomes, Array(258).fill('Error: no such name'))
})
