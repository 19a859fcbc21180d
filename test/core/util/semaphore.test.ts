import { getEventListeners } from 'node:events'
import t from 'tap'
import { openSemaphore } from '../../../core/util/semaphore.ts'

void t.test('a limited number hold a place; urgent ones go first, and aborted ones leave the queue', async (t) => {
	const places = openSemaphore(2)
	const held = [await places.acquire(), await places.acquire()]
	const order: string[] = []
	const leaving = new AbortController()
	const waits = [
		places.acquire({ signal: leaving.signal }).catch(() => order.push('left')),
		places.acquire().then((release) => (order.push('patient'), release())),
		places.acquire({ priority: 'urgent' }).then((release) => (order.push('urgent'), release())),
	]
	leaving.abort(new Error('gone'))
	held[0]?.()
	held[0]?.() // has no effect
	await Promise.all(waits)
	t.strictSame(order, ['left', 'urgent', 'patient'])
	await t.rejects(places.acquire({ signal: leaving.signal }), { message: 'gone' })
	held[1]?.()
	for (const release of [await places.acquire(), await places.acquire()]) release()
})

void t.test('a place that is held for too long is released', async (t) => {
	const places = openSemaphore(1, { hold_ms: 1 })
	await places.acquire()
	const alive = setInterval(() => {}, 1_000) // the semaphore's timer is unreferenced
	const release = await places.acquire()
	clearInterval(alive)
	release()
	t.pass()
})

void t.test('it is idle once no place is held or waited for', async (t) => {
	const places = openSemaphore(1)
	await places.idle()
	const order: string[] = []
	const release = await places.acquire()
	const idle = places.idle().then(() => order.push('idle'))
	const next = places.acquire().then((leave) => (order.push('next'), leave))
	release()
	;(await next)()
	await idle
	t.strictSame(order, ['next', 'idle'])
})

void t.test('all waits with the same signal share one listener, and end when it aborts', async (t) => {
	const leaving = new AbortController()
	const { acquire, waiting } = openSemaphore(1)
	const release = await acquire()
	const waits = [1, 2, 3].map(() => acquire({ signal: leaving.signal }))
	const stays = acquire()
	t.equal(getEventListeners(leaving.signal, 'abort').length, 1)
	release()
	const releaseFirst = await waits[0]
	leaving.abort(new Error('gone'))
	for (const wait of waits.slice(1)) await t.rejects(wait, { message: 'gone' })
	t.equal(waiting(), 1)
	releaseFirst?.()
	const releaseLast = await stays
	releaseLast()
})
