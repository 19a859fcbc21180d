import t from 'tap'
import { FairQueue } from '../../../core/util/fair-queue.ts'
import { openSemaphore } from '../../../core/util/semaphore.ts'
import { Shares } from '../../../core/util/shares.ts'

function takeAll(queue: FairQueue<string>, may?: (owner: string) => boolean): string {
	let taken = ''
	for (let next = queue.next(may); next; next = queue.next(may)) taken += `${next} `
	return taken.trim()
}

void t.test('owners take turns, and the items of each keep their order', async (t) => {
	const queue = new FairQueue<string>()
	for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'c2', 'b2']) queue.add(item.slice(0, 1), item)
	t.equal(queue.size, 7)
	t.equal(queue.sizeOf('a'), 3)
	t.ok(queue.delete('c', 'c1'))
	t.notOk(queue.delete('c', 'c1'))
	t.equal(queue.next(), 'a1')
	queue.add('d', 'd1')
	t.ok(queue.has((owner) => owner === 'd'))
	t.equal(
		takeAll(queue, (owner) => owner !== 'b'),
		'c2 a2 d1 a3',
	)
	t.notOk(queue.has((owner) => owner !== 'b'))
	t.equal(takeAll(queue), 'b1 b2')
	t.equal(queue.size, 0)
	t.equal(queue.sizeOf('b'), 0)
})

void t.test('items in the background follow the others of their owner, and cost no other owner its turn', (t) => {
	const queue = new FairQueue<string>()
	for (const item of ['a1', 'a2']) queue.add('a', item, true)
	for (const item of ['b1', 'b2', 'b3']) queue.add('b', item)
	queue.add('a', 'a3')
	queue.add('a', 'a4', true)
	t.equal(queue.sizeOf('a'), 4)
	t.ok(queue.delete('a', 'a2'))
	t.equal(takeAll(queue), 'a3 b1 a1 b2 a4 b3')
	t.equal(queue.size, 0)
	t.end()
})

void t.test('one owner gets all places, and further owners share the reserve', async (t) => {
	const shares = new Shares(
		() => 4,
		() => 8,
	)
	const takeAll = (owner: string): number => {
		while (shares.may(owner)) shares.add(owner)
		return shares.heldBy(owner)
	}
	t.strictSame(['a', 'b', 'c', 'd', 'e'].map(takeAll), [6, 3, 2, 1, 0], 'each gets half of the rest, rounded up')
	shares.remove('a')
	t.equal(takeAll('a'), 5, 'the owner with the most places waits')
	t.equal(takeAll('e'), 1)
	t.equal(shares.used, 12)
})

void t.test('a semaphore gives the reserve to owners other than the one with all places', async (t) => {
	let places = 1
	const semaphore = openSemaphore(() => places, { reserve: 1 })
	const order: string[] = []
	const held = new Map<string, () => void>()
	const take = (owner: string, id: string): Promise<void> =>
		semaphore.acquire({ owner }).then((release) => void (order.push(id), held.set(id, release)))
	const waits = [take('a', 'a1'), take('a', 'a2'), take('a', 'a3'), take('b', 'b1')]
	await Promise.all([waits[0], waits[3]])
	t.strictSame(order, ['a1', 'b1'])
	waits.push(take('c', 'c1'))
	t.strictSame([semaphore.waiting('a'), semaphore.waiting()], [2, 3])
	held.get('a1')?.()
	await waits[1]
	held.get('a2')?.()
	await waits[4]
	t.strictSame(order, ['a1', 'b1', 'a2', 'c1'], 'c goes before the third of a')
	places = 2
	semaphore.update()
	await waits[2]
	t.equal(semaphore.waiting(), 0)
})
