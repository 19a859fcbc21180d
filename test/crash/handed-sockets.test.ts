/**
 * Restarts of a gateway whose sockets another process holds, such as systemd: new connections wait meanwhile, and accepted deliveries
 * are executed. `RESTARTS=20`: the long version.
 */
import { spawn } from 'node:child_process'
import { createHmac, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { makeHome, send } from '../support/gateway.ts'
import { openStream } from '../support/sse.ts'
import type { TestStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'

const RESTARTS = Number(process.env.RESTARTS ?? 3)
const holderFile = fileURLToPath(new URL('../fixtures/socket-holder.mjs', import.meta.url))
const root = fileURLToPath(new URL('../../', import.meta.url))

void t.test(`${RESTARTS} restarts refuse no connection and lose no delivery`, async (t) => {
	const home = makeHome({ config: 'webhooks: {per_minute: 100000}\n' }, t)
	const env = { ...process.env, SVC_HOME: home, SVC_LOG_LEVEL: 'error' }
	const program = [holderFile, String(RESTARTS + 1), process.execPath, join(root, 'core/launch.mjs'), 'start']
	const holder = spawn(process.execPath, program, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] })
	const ended = new Promise((resolve) => holder.once('exit', resolve))
	const lines = createInterface(holder.stdout)
	const [port, legacy] = String((await lines[Symbol.asyncIterator]().next()).value).split(' ')
	holder.stdout.resume()
	const pid = (): number => (JSON.parse(readFileSync(join(home, 'run/gateway.json'), 'utf8')) as { pid: number }).pid
	t.teardown(async () => {
		holder.kill('SIGKILL')
		try {
			process.kill(pid(), 'SIGKILL')
		} catch {
			// The gateway has ended.
		}
		await ended
	})
	const url = `http://127.0.0.1:${port}`
	const headers = { connection: 'close' }

	// The gateway does not listen yet: the requests wait in the sockets.
	t.equal((await send(url, 'GET', { headers })).status, 200)
	t.equal((await fetch(`http://127.0.0.1:${legacy}/api/agents/none/conversation`, { headers })).status, 404)
	await send(`${url}/v1/agents`, 'POST', { body: { name: 'ada' }, headers })
	const hook = (await send(`${url}/v1/agents/ada/webhooks`, 'POST', { body: { slug: 'hook' }, headers })).body

	const accepted: string[] = []
	let isFinished = false
	t.teardown(() => (isFinished = true)) // also after a failure
	const deliver = async (): Promise<void> => {
		while (!isFinished) {
			const body = JSON.stringify({ id: randomUUID() })
			const signature = createHmac('sha256', hook.secret).update(body).digest('hex')
			const answer = await send(`${url}/v1/hooks/${hook.token}`, 'POST', {
				body,
				headers: { ...headers, 'content-type': 'application/json', 'x-signature': `sha256=${signature}` },
			})
			// 503 with Retry-After while the gateway stops: senders retry.
			if (answer.status === 200) accepted.push(answer.body.delivery_id as string)
			else if (answer.status !== 503) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`)
		}
	}
	const senders = [deliver(), deliver(), deliver()]
	const follower = followDeliveries(url)
	follower.ended.catch(() => {})
	t.teardown(() => follower.stop())
	for (let restart = 0; restart < RESTARTS; restart++) {
		const before = accepted.length
		await eventually(() => accepted.length > before + 5)
		const old = pid()
		process.kill(old, 'SIGTERM')
		await eventually(() => {
			try {
				return pid() !== old
			} catch {
				return false // there is no runtime file between two gateways
			}
		})
	}
	const before = accepted.length
	await eventually(() => accepted.length > before + 5)
	isFinished = true
	await Promise.all(senders)
	// A client that resumes misses no event.
	await Promise.race([eventually(() => accepted.every((id) => follower.ids().includes(id))), follower.ended])
	follower.stop()
	await follower.ended
	const followed = follower.ids()

	const deliveries = new Set<string>()
	for (let at = ''; ;) {
		const path = `/v1/agents/ada/webhooks/hook/deliveries?limit=100${at && `&before=${at}`}`
		const page = (await send(url + path, 'GET', { headers })).body as { delivery_id: string }[]
		if (page.length === 0) break
		for (const { delivery_id } of page) deliveries.add(delivery_id)
		at = page.at(-1)?.delivery_id ?? ''
	}
	const lost = accepted.filter((id) => !deliveries.has(id))
	t.strictSame(lost, [], `${accepted.length} deliveries were accepted, none is lost`)
	t.equal(new Set(followed).size, followed.length, 'a client that resumes gets no event twice')
	t.strictSame(
		accepted.filter((id) => !followed.includes(id)),
		[],
		'a client that resumes misses no event',
	)
	process.kill(pid(), 'SIGTERM')
	await ended
})

/** Reads the events of deliveries from a stream that resumes after each disconnection. `ids`: of the deliveries so far, in order. */
function followDeliveries(url: string): { ids(): string[]; stop(): void; ended: Promise<void> } {
	const seen: string[] = []
	let current: TestStream | undefined
	let isStopped = false
	const idsOf = (stream: TestStream | undefined): string[] =>
		(stream?.events ?? []).map(({ payload }) => String(payload.delivery_id))
	const follow = async (): Promise<void> => {
		let lastEventId = '0'
		while (!isStopped) {
			const stream = await openStream(url, { lastEventId, query: { event_type: 'webhook.accepted' } }).catch(
				(error: unknown) => {
					if (/answered with 503/.test(String(error))) return undefined
					throw error
				},
			)
			if (!stream) continue
			current = stream
			if (isStopped) stream.close()
			await stream.closed
			current = undefined
			seen.push(...idsOf(stream))
			lastEventId = stream.lastEventId || lastEventId
		}
	}
	return {
		ids: () => [...seen, ...idsOf(current)],
		stop() {
			isStopped = true
			current?.close()
		},
		ended: follow(),
	}
}
