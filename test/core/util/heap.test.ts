import fc from 'fast-check'
import t from 'tap'
import { Heap } from '../../../core/util/heap.ts'

void t.test('a heap returns the lowest first', async (t) => {
	fc.assert(
		fc.property(fc.array(fc.option(fc.integer(), { freq: 3 })), (steps) => {
			const heap = new Heap<number>((a, b) => a < b)
			let model: number[] = []
			for (const step of steps) {
				if (step === null) {
					model = model.toSorted((a, b) => a - b)
					if (heap.peek() !== model[0] || heap.pop() !== model.shift()) return false
				} else {
					heap.push(step)
					model.push(step)
				}
			}
			return heap.size === model.length
		}),
		{ numRuns: 500 },
	)
	t.equal(new Heap<number>((a, b) => a < b).pop(), undefined)
})
