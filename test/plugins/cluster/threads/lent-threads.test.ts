/** Threads that one process lends to another over a real listener. The workers behave as the prompts specify. */
import { createSecretKey, randomBytes } from 'node:crypto'
import http from 'node:http'
import t from 'tap'
import { openSigner, secretFrom } from '../../../../plugins/cluster/forwarding/proof.ts'
import { openBorrower } from '../../../../plugins/cluster/forwarding/threads/borrower.ts'
import { openConnector } from '../../../../plugins/cluster/forwarding/threads/connect.ts'
import type { LenderRoute } from '../../../../plugins/cluster/forwarding/threads/connect.ts'
import { openLender } from '../../../../plugins/cluster/forwarding/threads/lender.ts'
import type { Lender } from '../../../../plugins/cluster/forwarding/threads/lender.ts'
import { linkLimits, openLink } from '../../../../plugins/cluster/forwarding/threads/link.ts'
import { PROTOCOL, SIGNED_METHOD, targetOf } from '../../../../plugins/cluster/forwarding/threads/protocol.ts'
import type { FromLender } from '../../../../plugins/cluster/forwarding/threads/protocol.ts'
import { Listeners } from '../../../../core/http/listeners.ts'
import { openLog } from '../../../../core/log/log.ts'
import { openRedactor } from '../../../../core/redactor/redactor.ts'
import { RunPool } from '../../../../core/runs/run-pool.ts'
import type { RunHandle, RunHost } from '../../../../core/runs/run-pool.ts'
import { offlineOrder } from '../../../support/offline-order.ts'
import { runHost } from '../../../support/run-host.ts'
import { eventually } from '../../../support/wait.ts'

type Test = Pick<typeof t, 'teardown'>

const puppet = new URL('../../../fixtures/workers/puppet.ts', import.meta.url)
const log = openLog({ level: 'silent', format: 'json' }, openRedactor())
const version = '1.2.3'

/** A working gateway, with one thread for one run. */
async function working(test: Test) {
	const secret = secretFrom(createSecretKey(randomBytes(32)), 'svc')
	const pool = new RunPool({ worker: puppet, threads: 1, runs_per_thread: 1, grace_ms: 500 })
	const borrower = openBorrower({ tenure: 'now', version, secret: () => secret, pool, log })
	const listeners = new Listeners(log)
	listeners.protocols.add(PROTOCOL)
	listeners.current = {
		request: (_address, _request, response) => void response.writeHead(404).end(),
		upgrade: (_address, request, socket, head) => borrower.upgrade(request, socket, head),
	}
	;(await listeners.open({ main: { host: '127.0.0.1', port: 0 } })).take()
	test.teardown(async () => {
		await pool[Symbol.asyncDispose]()
		borrower.close()
		await listeners.close(0)
	})
	const url = new URL(listeners.url('main') ?? '')
	const route: LenderRoute = { tenure: 'now', key: secret.key, urls: { main: url, legacy: null } }
	return { pool, route, url }
}

function lend(test: Test, route: LenderRoute, change: Partial<Parameters<typeof openLender>[0]> = {}): Lender {
	const lender = openLender({
		name: 'g2',
		version,
		worker: puppet,
		threads: 1,
		runs_per_thread: 1,
		heap_mib: 64,
		log,
		...change,
	})
	test.teardown(() => lender.close(0))
	lender.follow(route)
	return lender
}

/** Waits until `threads` threads are lent. */
const lent = (pool: RunPool, threads: number): Promise<unknown> =>
	eventually(() => pool.stats().lent.reduce((sum, one) => sum + one.threads, 0) === threads)

function run(pool: RunPool, run_id: string, prompt: string): RunHandle & { begun: Promise<void> } {
	const begun = Promise.withResolvers<void>()
	const host: RunHost = {
		...runHost,
		event: () => begun.resolve(),
		tool: () => Promise.resolve({ status: 'done', ok: true, content: 'a result' }),
	}
	const handle = pool.execute(offlineOrder(run_id, prompt), host)
	return Object.assign(handle, { begun: begun.promise })
}

/** A run that occupies the only place of the working gateway's own thread. */
async function occupyOwn(pool: RunPool): Promise<void> {
	await run(pool, 'own', 'wait').begun
}

void t.test('runs go to the thread with the fewest runs, and their calls are answered there', async (t) => {
	const { pool, route } = await working(t)
	await occupyOwn(pool)
	t.equal(pool.capacity, 1)
	const waiting = run(pool, 'r1', 'call')
	t.match(pool.stats(), { active: 1, waiting: 1 })
	lend(t, route)
	t.match(await waiting.outcome, { status: 'completed', answer: { content: /a result/ } })
	t.match(pool.stats(), { capacity: 2, threads: 1, lent: [{ gateway: 'g2', threads: 1, runs: 0 }] })
	const others = ['r2', 'r3'].map((id) => run(pool, id, 'wait'))
	await others[0]?.begun
	t.match(pool.stats(), { active: 2, waiting: 1, lent: [{ runs: 1 }] })
	await others[0]?.abort('enough')
	t.strictSame(await others[0]?.outcome, { status: 'stopped' })
	await others[1]?.begun
})

void t.test('a stuck thread is ended over the link, and replaced', async (t) => {
	const { pool, route } = await working(t)
	await occupyOwn(pool)
	lend(t, route)
	await lent(pool, 1)
	const stuck = run(pool, 'stuck', 'loop')
	await stuck.begun
	await stuck.abort('enough')
	t.strictSame(await stuck.outcome, { status: 'stopped' })
	t.match(await run(pool, 'next', 'say').outcome, { status: 'completed' })
	t.match(pool.stats(), { lost_threads: 1, lent: [{ threads: 1 }] })
})

void t.test('a thread that dies loses its runs, which can continue', async (t) => {
	const { pool, route } = await working(t)
	await occupyOwn(pool)
	lend(t, route)
	await lent(pool, 1)
	await t.rejects(run(pool, 'r', 'throw').outcome, {
		code: 'thread_lost',
		message: /a thread of the gateway g2 ended: .*continues from its journal/,
	})
	t.match(await run(pool, 'r', 'say').outcome, { status: 'completed' })
})

void t.test('a lender that stops completes its runs, and accepts no more', async (t) => {
	const { pool, route } = await working(t)
	await occupyOwn(pool)
	const lender = lend(t, route)
	await lent(pool, 1)
	const last = run(pool, 'last', 'wait')
	await last.begun
	const closed = lender.close(60_000)
	await lent(pool, 0)
	const next = run(pool, 'next', 'say')
	t.match(pool.stats(), { capacity: 1, active: 2, waiting: 1 })
	await last.abort('enough')
	t.strictSame(await last.outcome, { status: 'stopped' })
	await closed
	t.match(pool.stats(), { lent: [] })
	await pool.running('own')?.abort('enough')
	t.match(await next.outcome, { status: 'completed' })
})

void t.test('runs of a lender that is gone are lost, and capacity shrinks', async (t) => {
	const { pool, route } = await working(t)
	await occupyOwn(pool)
	const lender = lend(t, route)
	await lent(pool, 1)
	const gone = run(pool, 'r', 'wait')
	await gone.begun
	lender.follow(null)
	await t.rejects(gone.outcome, { code: 'thread_lost', message: /g2 no longer lends its threads/ })
	t.match(pool.stats(), { capacity: 1, lent: [], lost_threads: 0 })
	lender.follow(route)
	await lent(pool, 1)
	t.match(await run(pool, 'r', 'say').outcome, { status: 'completed' }, 'it can lend again')
})

void t.test('a pool that is closed releases the lent threads', async (t) => {
	const { pool, route } = await working(t)
	await occupyOwn(pool)
	lend(t, route)
	await lent(pool, 1)
	const remote = run(pool, 'r', 'wait')
	await remote.begun
	await pool[Symbol.asyncDispose]()
	await t.rejects(remote.outcome, { code: 'thread_lost', message: /the gateway is stopping/ })
	t.match(pool.stats(), { lent: [], active: 0 })
})

void t.test('a lender whose threads do not start ends the link', async (t) => {
	const { pool, route } = await working(t)
	await occupyOwn(pool)
	lend(t, route, { worker: new URL('../../../fixtures/workers/no-such-file.ts', import.meta.url) })
	await lent(pool, 1)
	await t.rejects(run(pool, 'r', 'say').outcome, { code: 'thread_lost' })
})

void t.test('an order that is too large for the link fails only its run', async (t) => {
	const { pool, route } = await working(t)
	await occupyOwn(pool)
	lend(t, route)
	await lent(pool, 1)
	t.match(await run(pool, 'r', 'x'.repeat(linkLimits.frame)).outcome, { status: 'failed' })
	t.match(await run(pool, 'r', 'say').outcome, { status: 'completed' })
})

/** Returns the status of an upgrade to the link's protocol. The socket stays open until the end of the test. */
function requestUpgrade(test: Test, url: URL, proof: string, path = targetOf(version)): Promise<number | undefined> {
	return new Promise((resolve, reject) => {
		const headers = { connection: 'Upgrade', upgrade: PROTOCOL, 'svc-forwarded': proof }
		const request = http.request({ host: url.hostname, port: url.port, path, headers, agent: false })
		request.on('response', (answer) => {
			answer.resume()
			resolve(answer.statusCode)
		})
		request.on('upgrade', (answer, socket) => {
			socket.on('error', () => {})
			test.teardown(() => socket.destroy())
			resolve(answer.statusCode)
		})
		request.on('error', reject)
		request.end()
	})
}

void t.test('another version, another key, another tenure and a used proof are refused', async (t) => {
	const { pool, route, url } = await working(t)
	const refused = async (change: Partial<LenderRoute>, ownVersion = version): Promise<unknown> =>
		openConnector(ownVersion)({ ...route, ...change }, new AbortController().signal).catch((error: unknown) => error)
	t.match(await refused({}, '1.2.4'), { code: 'conflict', message: /another version/ })
	t.match(await refused({ key: createSecretKey(randomBytes(32)) }), { code: 'unavailable', message: /503/ })
	t.match(await refused({ tenure: 'before' }), { code: 'unavailable', message: /503/ })

	const target = targetOf(version)
	const ask = (proof: string, path?: string) => requestUpgrade(t, url, proof, path)
	const sign = openSigner()
	const signed = { address: 'main', method: SIGNED_METHOD, target } as const
	const proof = sign(route.key, 'now', {}, signed)
	t.equal(await ask(proof, targetOf('9.9.9')), 503, 'for another target')
	t.equal(await ask(proof), 101)
	t.equal(await ask(proof), 503, 'used before')
	t.equal(await ask(sign(route.key, 'now', {}, { ...signed, method: 'GET' })), 503, 'for a forwarded request')
	t.equal(await ask(''), 503)
	t.match(pool.stats(), { lent: [] }, 'a proof alone does not make a lender')
})

void t.test('connections count as lenders before their handshake', async (t) => {
	const { route, url } = await working(t)
	const sign = openSigner()
	const target = targetOf(version)
	const upgrade = () =>
		requestUpgrade(t, url, sign(route.key, 'now', {}, { address: 'main', method: SIGNED_METHOD, target }))
	const statuses = await Promise.all(Array.from({ length: 70 }, upgrade))
	t.equal(statuses.filter((status) => status === 101).length, 64)
	t.equal(statuses.filter((status) => status === 503).length, 6)
	await t.rejects(openConnector(version)(route, new AbortController().signal), { code: 'unavailable', message: /503/ })
})

void t.test('a peer with the key that violates the protocol is disconnected', async (t) => {
	const { pool, route } = await working(t)
	const connect = openConnector(version)
	const hello: FromLender = { kind: 'hello', name: 'g3', threads: 1, runs_per_thread: 1 }
	const violations: [string, ...unknown[]][] = [
		['no hello', { kind: 'leaving' }],
		['too many threads', { ...hello, threads: 65 }],
		['an invalid number', { ...hello, runs_per_thread: 'x' }],
		['hello twice', hello, hello],
		[
			'more threads than announced',
			hello,
			...Array.from({ length: 200 }, (_, n) => ({ kind: 'opened', thread: n + 2 })),
		],
		['a thread twice', hello, { kind: 'opened', thread: 1 }],
		['null', hello, null],
	]
	for (const [what, ...messages] of violations) {
		const socket = await connect(route, new AbortController().signal)
		const ended = Promise.withResolvers<string>()
		const link = openLink<unknown>(socket, { receive: () => {}, ended: ended.resolve })
		for (const message of messages) link.send(message)
		t.match(await ended.promise, /closed/, what)
	}
	await lent(pool, 0)
	lend(t, route)
	await lent(pool, 1)
	t.pass('others are not affected')
})
