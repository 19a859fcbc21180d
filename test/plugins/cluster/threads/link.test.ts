/** A link between two gateways, with peers that disconnect, are silent, do not read, send invalid data or lack the key. */
import { createSecretKey, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import type { Duplex } from 'node:stream'
import t from 'tap'
import { encode, frameReader, ping } from '../../../../plugins/cluster/forwarding/threads/frames.ts'
import { linkLimits, openLink } from '../../../../plugins/cluster/forwarding/threads/link.ts'
import type { LinkLimits, ThreadLink } from '../../../../plugins/cluster/forwarding/threads/link.ts'
import { secureAsBorrower, secureAsLender } from '../../../../plugins/cluster/forwarding/threads/secure.ts'
import type { SharedKey } from '../../../../plugins/cluster/forwarding/threads/secure.ts'
import { eventually } from '../../../support/wait.ts'

type Test = Pick<typeof t, 'teardown'>

const LIMIT = 1024
const messages = ['a', { list: [1, null, undefined, new Map([[1, 2n]])] }, new Uint8Array([1, 2, 3]), 'ä'.repeat(100)]

void t.test('frames arrive complete, however they are split', async (t) => {
	const bytes = Buffer.concat(messages.flatMap((message) => [...encode(message, LIMIT), ping]))
	for (const size of [1, 3, 5, 64, bytes.length]) {
		const received: unknown[] = []
		const read = frameReader(LIMIT, (message) => received.push(message))
		for (let at = 0; at < bytes.length; at += size) read(bytes.subarray(at, at + size))
		t.strictSame(received, messages, `in pieces of ${size} bytes`)
	}
})

void t.test('a frame beyond the limit is refused at both ends, before it arrives', (t) => {
	t.throws(() => encode('x'.repeat(LIMIT), LIMIT), RangeError)
	const read = frameReader(LIMIT, () => t.fail('nothing was received'))
	const head = Buffer.alloc(4)
	head.writeUInt32BE(LIMIT + 1)
	t.throws(() => read(head), RangeError)
	t.end()
})

/** A link, and the bare socket at its other end. */
async function linked(test: Test, change: Partial<LinkLimits> = {}) {
	const [socket, peer] = await pair(test)
	const received: unknown[] = []
	const ended = Promise.withResolvers<string>()
	let drained = 0
	const link: ThreadLink<unknown> = openLink(socket, {
		receive: (message) => received.push(message),
		ended: ended.resolve,
		drained: () => drained++,
		limits: { ...linkLimits, ...change },
	})
	test.teardown(() => link.end('the test is over'))
	return { link, peer, received, ended: ended.promise, drained: () => drained }
}

void t.test('a peer that is silent ends the link, and one that pings does not', async (t) => {
	const { peer, ended } = await linked(t, { pingMs: 20 })
	peer.resume()
	let pings = 0
	const timer = setInterval(() => {
		peer.write(ping)
		if (++pings === 20) clearInterval(timer)
	}, 20)
	t.match(await ended, /it was silent/)
	t.equal(pings, 20, 'not before its last ping')
	await eventually(() => peer.destroyed)
})

void t.test('a peer that does not read makes the link busy, and then ends it', async (t) => {
	const limits = { frame: LIMIT * LIMIT, busy: LIMIT * LIMIT, unsent: 8 * LIMIT * LIMIT, pingMs: 60_000 }
	const { link, peer, ended, drained } = await linked(t, limits)
	peer.pause()
	const piece = Buffer.alloc(LIMIT * LIMIT - 100)
	// The buffers of the system accept the first ones.
	while (!link.isBusy) link.send(piece)
	peer.resume()
	await eventually(() => drained() > 0)
	t.notOk(link.isBusy, 'it continues when the peer reads again')
	peer.pause()
	for (let n = 0; n < 100; n++) link.send(piece)
	t.match(await ended, /reads too slowly/)
})

void t.test('invalid data, a frame that is too large, and a closed connection end the link', async (t) => {
	const invalid = await linked(t)
	invalid.peer.write(Buffer.concat([Buffer.from([0, 0, 0, 3]), Buffer.from('abc')]))
	t.match(await invalid.ended, /invalid message/)

	const large = await linked(t, { frame: LIMIT })
	large.peer.write(Buffer.from([0xff, 0, 0, 0]))
	t.match(await large.ended, /invalid message: a frame of 4278190080 bytes/)
	large.link.send('x')
	t.pass('messages after the end are ignored')

	const closed = await linked(t)
	closed.peer.write(Buffer.concat(encode('last', LIMIT)))
	closed.peer.end()
	t.match(await closed.ended, /closed/)
	t.strictSame(closed.received, ['last'])
})

void t.test('a message that cannot be cloned is refused, and the link stays open', async (t) => {
	const { link, peer } = await linked(t, { frame: LIMIT })
	const arrived: unknown[] = []
	peer.on(
		'data',
		frameReader(LIMIT, (message) => arrived.push(message)),
	)
	t.throws(() => link.send({ run: () => {} }), /could not be cloned/)
	t.throws(() => link.send('x'.repeat(LIMIT)), RangeError)
	link.send('fine')
	await eventually(() => arrived.length > 0)
	t.strictSame(arrived, ['fine'])
})

const keyOf = (tenure = 'one'): SharedKey => ({ key: createSecretKey(randomBytes(32)), tenure })

void t.test('both ends of an encrypted connection must have the key of the same tenure', async (t) => {
	const shared = keyOf()
	const secured = async (lender: SharedKey, borrower: SharedKey) => {
		const [one, other] = await pair(t)
		return Promise.allSettled([
			secureAsLender(one, Buffer.alloc(0), lender),
			secureAsBorrower(other, Buffer.alloc(0), borrower),
		])
	}
	const [one, other] = await secured(shared, shared)
	if (one.status === 'rejected' || other.status === 'rejected') throw new Error('they do not connect')
	one.value.write('hello')
	t.equal(String((await once(other.value, 'data'))[0]), 'hello')
	one.value.destroy()
	other.value.destroy()
	for (const wrong of [keyOf(), { ...shared, tenure: 'two' }])
		t.strictSame(
			(await secured(shared, wrong)).map(({ status }) => status),
			['rejected', 'rejected'],
		)
})

void t.test('a message that is changed in transit ends the link, and is not received', async (t) => {
	const shared = keyOf()
	const [[client, near], [far, socket]] = [await pair(t), await pair(t)]
	let flips = false
	near.on('data', (bytes: Buffer) => {
		if (flips) bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1
		far.write(bytes)
	})
	far.pipe(near)
	const [lender, borrower] = await Promise.all([
		secureAsLender(client, Buffer.alloc(0), shared),
		secureAsBorrower(socket, Buffer.alloc(0), shared),
	])
	const received: unknown[] = []
	const ended = Promise.withResolvers<string>()
	openLink(borrower, { receive: (message) => received.push(message), ended: ended.resolve })
	const link = openLink<string>(lender, { receive: () => {}, ended: () => {} })
	t.teardown(() => link.end('the test is over'))
	link.send('whole')
	await eventually(() => received.length > 0)
	flips = true
	link.send('changed')
	t.ok(await ended.promise)
	t.strictSame(received, ['whole'])
})

async function pair(test: Test): Promise<[Duplex & net.Socket, net.Socket]> {
	const server = net.createServer().listen(0, '127.0.0.1')
	await once(server, 'listening')
	const client = net.connect((server.address() as net.AddressInfo).port, '127.0.0.1')
	const [socket] = (await once(server, 'connection')) as [net.Socket]
	for (const one of [client, socket]) one.on('error', () => {})
	test.teardown(() => {
		client.destroy()
		socket.destroy()
		server.close()
	})
	return [client, socket]
}
