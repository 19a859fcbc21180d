import t from 'tap'
import { openSystemLookup } from '../../../core/fetch/system-lookup.ts'
import type { ResolvedAddress } from '../../../core/fetch/system-lookup.ts'

void t.test('an agent whose name servers are silent does not block other agents', async (t) => {
	const pending = new Map<string, PromiseWithResolvers<ResolvedAddress[]>>()
	const answer = [{ address: '192.0.2.1', family: 4 }]
	const lookup = openSystemLookup((host) => {
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
	for (const [n, one] of flood.entries()) {
		while (!pending.has(`a${n}`)) await new Promise((resolve) => setImmediate(resolve))
		pending.get(`a${n}`)?.reject(new Error('no such name'))
		await t.rejects(one, { message: 'no such name' })
	}
})
