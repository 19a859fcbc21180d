/** The values that a plugin's table stores, and those that it refuses since they are not plain data. */
import t from 'tap'
import { startHost } from '../../support/host.ts'

const values = `
	const circle = { name: 'circle' }
	circle.self = [circle]
	const shared = { a: 1 }
	globalThis.stored = []
	for (const [name, value] of Object.entries({
		map: { counts: new Map([['a', 1]]) }, set: [new Set([1])], floats: new Float64Array(2), circle, big: { n: 1n },
		twice: { one: shared, other: [shared] }, date: new Date(0), bytes: { b: new Uint8Array([1]) },
	}))
		await things.put(name, value).then(
			async () => globalThis.stored.push([name, JSON.stringify(await things.get(name))]),
			(error) => globalThis.stored.push([name, error.code + ': ' + error.message]))
	await things.update('map', () => new Map()).catch((error) => globalThis.stored.push(['update', error.code]))
	await things.create('map', new Map()).catch((error) => globalThis.stored.push(['create', error.code]))
`

for (const secret of ['', "ctx.redactor.add('gateway', { id: 's', name: 'S', value: 'a-secret-of-the-plugin' })"]) {
	void t.test(`values that are not plain data are refused${secret && ', also while there are secrets'}`, async (t) => {
		const code = `export default { name: 'a', async start(ctx) { const things = ctx.collection('things'); ${secret}; ${values} } }`
		const host = await startHost(t.testdir(), { 'a/index.js': code }, { a: {} })
		t.teardown(() => host.stop())
		t.equal(host.gateway.status.plugins()[0]?.last_error, null)
		const { stored } = globalThis as { stored?: [name: string, result: string][] }
		const results = Object.fromEntries(stored ?? [])
		t.match(results, {
			map: /^invalid_request: the value is not plain data: counts is a Map/,
			set: /^invalid_request: .*: 0 is a Set/,
			floats: /^invalid_request: .*: it is a Float64Array/,
			circle: /^invalid_request: .*: self\.0 contains itself/,
			big: /^invalid_request: .*BigInt/,
			twice: '{"one":{"a":1},"other":[{"a":1}]}',
			date: '"1970-01-01T00:00:00.000Z"',
			bytes: '{"b":{"0":1}}',
			update: 'invalid_request',
			create: 'invalid_request',
		})
	})
}
