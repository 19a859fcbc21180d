import t from 'tap'
import { openSerialQueue } from '../../../core/util/serial-queue.ts'

void t.test('a serial queue runs tasks one after another, and refuses more than its limit', async (t) => {
	const queue = openSerialQueue(3, () => new Error('full'))
	const gate = Promise.withResolvers<void>()
	const order: number[] = []
	const first = queue.run(async () => {
		await gate.promise
		order.push(1)
	})
	const second = queue.run(() => {
		order.push(2)
		throw new Error('second')
	})
	const third = queue.run(() => void order.push(3))
	t.equal(queue.length(), 3)
	await t.rejects(
		queue.run(() => t.fail('the refused task runs')),
		{ message: 'full' },
	)
	gate.resolve()
	await first
	await t.rejects(second, { message: 'second' })
	await third
	t.strictSame(order, [1, 2, 3])
	t.equal(await queue.run(() => 4), 4, 'the queue accepts tasks again')
	await queue.idle()
	t.equal(queue.length(), 0)
})
