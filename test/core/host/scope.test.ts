import t from 'tap'
import { Scope } from '../../../core/host/scope.ts'

void t.test('releases in reverse order, after the signal', async (t) => {
	const scope = new Scope()
	const order: string[] = []
	scope.signal.addEventListener('abort', () => order.push('signal'))
	scope.defer(() => order.push('first'), 'first')
	scope.own({ [Symbol.asyncDispose]: async () => void order.push('second') }, 'second')
	scope.own({ [Symbol.dispose]: () => void order.push('third') }, 'third')
	t.strictSame(await scope.release(1_000), [])
	t.strictSame(order, ['signal', 'third', 'second', 'first'])
	t.strictSame(await scope.release(1_000), [])
	t.equal(order.length, 4, 'everything is released once')
})

void t.test('reports releases that throw or hang, and releases the rest', async (t) => {
	const scope = new Scope()
	let released = false
	scope.defer(() => (released = true), 'good')
	scope.defer(() => new Promise(() => {}), 'hanging socket')
	scope.defer(() => {
		throw new Error('no')
	}, 'broken timer')
	const complaints = await scope.release(20)
	t.match(complaints[0], /broken timer failed to be released: no/)
	t.match(complaints[1], /hanging socket was not released in 20 ms/)
	t.ok(released)
})

void t.test('refuses acquisitions after the release', async (t) => {
	const scope = new Scope()
	await scope.release(10)
	t.throws(() => scope.defer(() => {}, 'late'), /"late" was acquired after/)
})
