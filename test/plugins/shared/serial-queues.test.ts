import t from 'tap'
import { SerialQueues } from '../../../plugins/shared/serial-queues.ts'

void t.test('queues with different names run concurrently', async (t) => {
	const queues = new SerialQueues()
	const gate = Promise.withResolvers<void>()
	const order: string[] = []
	const work = [
		queues.run('a', async () => {
			await gate.promise
			order.push('a1')
		}),
		queues.run('a', () => void order.push('a2')),
		queues.run('b', () => {
			order.push('b1')
			gate.resolve()
		}),
	]
	t.strictSame([queues.length('a'), queues.length('b'), queues.length('c')], [2, 1, 0])
	await queues.idle()
	t.strictSame(order, ['b1', 'a1', 'a2'])
	await Promise.all(work)
	t.equal(queues.length('a'), 0)
})
