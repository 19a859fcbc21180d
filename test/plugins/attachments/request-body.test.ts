/** The body of an upload: parts are released as soon as they are stored. */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { bodyOf } from '../../../plugins/attachments/routes.ts'
import { eventually } from '../../support/wait.ts'

const PARTS = 100

void t.test('parts that were read are released while the upload continues', async (t) => {
	setFlagsFromString('--expose-gc')
	t.teardown(() => setFlagsFromString('--no-expose-gc'))
	const collect = runInNewContext('gc') as () => void
	const request = new IncomingMessage(new Socket())
	const parts = bodyOf(request, new AbortController().signal)
	const read: WeakRef<Uint8Array>[] = []
	for (let n = 0; n < PARTS; n++) {
		request.push(Buffer.alloc(1024, n))
		const { value } = await parts.next()
		read.push(new WeakRef(value as Uint8Array))
	}
	await eventually(
		() => {
			collect()
			return read.filter((part) => part.deref()).length
		},
		(count) => count <= 5,
	)
	request.push(null)
	t.strictSame(await parts.next(), { done: true, value: undefined })
})

void t.test('an abort ends the body with its reason, during a read and between two', async (t) => {
	for (const isReading of [true, false]) {
		const request = new IncomingMessage(new Socket())
		const controller = new AbortController()
		const parts = bodyOf(request, controller.signal)
		request.push('one')
		await parts.next()
		const next = isReading ? parts.next() : undefined
		controller.abort(new Error('revoked'))
		await t.rejects(next ?? parts.next(), { message: 'revoked' })
		t.notOk(request.destroyed)
		await discarded(request)
	}
})

void t.test(
	'the rest of the body is discarded when its reader stops, so that the client receives the response',
	async () => {
		const request = new IncomingMessage(new Socket())
		const parts = bodyOf(request, new AbortController().signal)
		request.push('one')
		await parts.next()
		await parts.return(undefined)
		await discarded(request)
	},
)

/** Settles once the rest of the body was read. */
async function discarded(request: IncomingMessage): Promise<void> {
	request.push('two')
	request.push(null)
	await eventually(() => request.readableEnded)
}
