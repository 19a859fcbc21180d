import { getEventListeners } from 'node:events'
import t from 'tap'
import { onAbort } from '../../../core/util/on-abort.ts'

const listenersOf = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length

void t.test('all callbacks of a signal share one listener, and removed ones are not called', (t) => {
	const ending = new AbortController()
	const called: string[] = []
	onAbort(ending.signal, () => called.push('a'))
	const leave = onAbort(ending.signal, () => called.push('b'))
	onAbort(ending.signal, () => called.push('c'))
	t.equal(listenersOf(ending.signal), 1)
	leave()
	ending.abort()
	t.strictSame(called, ['a', 'c'])
	t.end()
})

void t.test('the listener is removed with the last callback, since it would keep a composite signal in memory', (t) => {
	const signal = AbortSignal.any([new AbortController().signal])
	const leaves = [onAbort(signal, () => {}), onAbort(signal, () => {})]
	for (const leave of leaves) leave()
	t.equal(listenersOf(signal), 0)
	const again = onAbort(signal, () => {})
	for (const leave of leaves) leave()
	t.equal(listenersOf(signal), 1, 'removing a callback again does not remove others')
	again()
	t.equal(listenersOf(signal), 0)
	t.end()
})
