/** The body of an upload: nothing of it stays in memory once it is stored. */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { bodyOf } from '../../../plugins/attachments/request-body.ts'
import { eventually } from '../../support/wait.ts'

const PARTS = 100

void t.test('parts that were taken do not stay in memory while more are to come', async (t) => {
	setFlagsFromString('--expose-gc')
	t.teardown(() => setFlagsFromString('--no-expose-gc'))
	const collect = runInNewContext('gc') as () => void
	const request = new IncomingMessage(new Socket())
	const parts = bodyOf(request, new AbortController().signal)
	const taken: WeakRef<Uint8Array>[] = []
	for (let n = 0; n < PARTS; n++) {
		request.push(Buffer.alloc(1024, n))
		const { value } = await parts.next()
		taken.push(new WeakRef(value as Uint8Array))
	}
	const left = (): number => taken.filter((part) => part.deref()).length
	await eventually(
		() => {
			collect()
			return left()
		},
		(count) => count <= 5,
	)
	request.push(null)
	t.strictSame(await parts.next(), { done: true, value: undefined })
})

void t.test('the body ends with the reason of the signal, while a part is awaited and between two', async (t) => {
	for (const isAwaited of [true, false]) {
		const request = new IncomingMessage(new Socket())
		const end = new AbortController()
		const parts = bodyOf(request, end.signal)
		request.push('one')
		await parts.next()
		const next = isAwaited ? parts.next() : undefined
		end.abort(new Error('revoked'))
		await t.rejects(next ?? parts.next(), { message: 'revoked' })
		t.notOk(request.destroyed)
		await discarded(request)
	}
})

void t.test('the rest is discarded if no more parts are taken, so that the client sees the answer', async () => {
	const request = new IncomingMessage(new Socket())
	const parts = bodyOf(request, new AbortController().signal)
	request.push('one')
	await parts.next()
	await parts.return(undefined)
	await discarded(request)
})

/** Settles once the rest of the body was read. */
async function discarded(request: IncomingMessage): Promise<void> {
	request.push('two')
	request.push(null)
	await eventually(
		() => request.readableEnded,
		(isEnded) => isEnded,
	)
}
