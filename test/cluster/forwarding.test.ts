/** A waiting gateway answers every request by forwarding it to the working one. */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import t from 'tap'
import WebSocket from 'ws'
import { openSigner, secretFrom } from '../../plugins/cluster/forwarding/proof.ts'
import { installationKey } from '../../core/host/config.ts'
import { openClient } from '../../plugins/cluster/nats/client.ts'
import { namesOf } from '../../plugins/cluster/nats/streams.ts'
import { addToken } from '../support/add.ts'
import { svcFor } from '../support/cli.ts'
import { send } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import { startMember } from '../support/cluster-gateways.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import { providersAt } from '../support/providers.ts'
import { openStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'

/** Sends bytes that no HTTP client sends, and returns everything up to the end of the connection. */
async function exchange(url: string, bytes: string): Promise<string> {
	const { hostname, port } = new URL(url)
	const socket = net.connect(Number(port), hostname)
	socket.write(bytes)
	return Buffer.concat(await socket.toArray()).toString()
}

void t.test('a waiting gateway', { skip: withoutNats(), timeout: 240_000 }, async (t) => {
	const [cluster, model] = await Promise.all([startNats(), startManualModel()])
	const config = providersAt({ held: model.url })
	const working = await startMember(cluster, { config })
	const waiting = await startMember(cluster, { config, keysOf: working.home })
	t.teardown(async () => {
		await waiting.stop()
		await working.stop()
		await Promise.all([cluster[Symbol.asyncDispose](), model.stop()])
	})
	const { gateway } = await working.works
	await eventually(async () => (await waiting.request('GET', '/readyz')).status === 200)
	const tenure = await (async () => {
		const client = await openClient({ url: cluster.url })
		const names = namesOf('svc')
		const found = await client.last(names.state, names.lease)
		await client.close()
		return (JSON.parse(String(found?.data)) as { id: string }).id
	})()

	await t.test('JSON requests, with the same request id on both', async (t) => {
		const made = await waiting.request('POST', '/v1/agents', { body: { name: 'anna' } })
		t.equal(made.status, 201)
		t.equal((await working.request('GET', '/v1/agents/anna')).status, 200)
		const found = await waiting.request('GET', '/v1/agents/nobody', { headers: { 'x-request-id': 'my-own' } })
		t.match({ status: found.status, code: found.body.code }, { status: 404, code: 'not_found' })
		t.equal(found.headers.get('x-request-id'), 'my-own')
		t.equal((await waiting.request('POST', '/v1/agents', { body: 'no JSON' })).status, 400)
		const bare = await fetch(`${waiting.url}/v1/agents/anna`, { method: 'DELETE' })
		t.equal(bare.status, 204)
		t.equal((await waiting.request('POST', '/v1/agents', { body: { name: 'anna' } })).status, 201)
		const head = await fetch(`${waiting.url}/v1/agents/anna`, { method: 'HEAD' })
		t.equal(head.status, 200)
	})

	await t.test('a local caller is local at either gateway, and no other caller is', async (t) => {
		const status = async (headers: Record<string, string>): Promise<number> =>
			(await waiting.request('GET', '/v1/agents/anna', { headers })).status
		t.equal(await status({}), 200, 'no token is needed on the machine itself')
		t.equal(await status({ 'x-forwarded-for': '203.0.113.7' }), 401, 'a proxy')
		t.equal(await status({ origin: 'http://evil.example' }), 401, 'a page')
		t.equal(await status({ authorization: 'Bearer svc_wrong' }), 401)
		const old = 'GET /v1/agents/anna HTTP/1.0\r\nhost: localhost\r\n\r\n'
		t.match(await exchange(waiting.url, old), /^HTTP\/1.1 401 /, 'HTTP/1.0, as of a proxy')
	})

	await t.test('a client cannot hide a header from the working gateway by naming it in Connection', async (t) => {
		const head = (method: string, more: string): string =>
			`${method} /v1/agents/anna HTTP/1.1\r\nhost: localhost\r\n${more}\r\n\r\n`
		const viaProxy = 'x-forwarded-for: 203.0.113.7\r\nconnection: close, x-forwarded-for'
		t.match(await exchange(waiting.url, head('GET', viaProxy)), /^HTTP\/1.1 401 /, 'it does not count as local')

		// Without its length, the body would be read as another request, whose sender is a gateway of this machine.
		const hidden = 'DELETE /v1/agents/anna HTTP/1.1\r\nhost: localhost\r\n\r\n'
		const withBody = `x-forwarded-for: 203.0.113.7\r\nconnection: close, content-length\r\ncontent-length: ${hidden.length}`
		for (const method of ['GET', 'DELETE', 'OPTIONS'])
			t.match(await exchange(waiting.url, head(method, withBody) + hidden), /^HTTP\/1.1 4\d\d /, method)
		t.equal((await working.request('GET', '/v1/agents/anna')).status, 200, 'the agent is still there')
	})

	await t.test('a request that announces trailers is forwarded', async (t) => {
		const head = 'GET /v1/agents/anna HTTP/1.1\r\nhost: localhost\r\ntrailer: digest\r\nconnection: close\r\n\r\n'
		t.match(await exchange(waiting.url, head), /^HTTP\/1.1 200 /)
	})

	await t.test('a forwarded request without a valid proof is refused', async (t) => {
		const { key } = secretFrom(await installationKey(working.home, {}), 'svc')
		const sign = openSigner()
		const request = { address: 'main', method: 'GET', target: '/v1/agents/anna' } as const
		const local = { remoteAddress: '127.0.0.1', localAddress: '127.0.0.1' }
		const ask = (proof: string, path = '/v1/agents/anna') =>
			working.request('GET', path, { headers: { 'svc-forwarded': proof } })
		const proof = sign(key, tenure, local, request)
		t.equal((await ask(proof, '/v1/agents')).status, 503, 'for another target')
		t.equal((await ask(proof)).status, 200)
		const again = await ask(proof)
		t.match({ status: again.status, code: again.body.code }, { status: 503, code: 'unavailable' }, 'used before')
		t.match(again.headers.get('retry-after'), /^\d+$/)
		t.equal((await ask(sign(key, 'another', local, request))).status, 503, 'of another tenure')
		const other = secretFrom(await installationKey(working.home, {}), 'other')
		t.equal((await ask(sign(other.key, tenure, local, request))).status, 503, 'with another key')
		for (const wrong of ['', 'x', '1 2 3 4 5 6', 'é é'])
			t.equal((await ask(Buffer.from(wrong).toString('latin1'))).status, 503)
		t.equal((await waiting.request('GET', '/v1/agents', { headers: { 'svc-forwarded': 'x' } })).status, 503, 'a loop')

		// The peer is loopback, the client is not.
		const far = { remoteAddress: '203.0.113.9', localAddress: '203.0.113.1' }
		t.equal((await ask(sign(key, tenure, far, request))).status, 401)
		const stream = await openStream(working.url, { query: { event_type: 'security.violation' } })
		await working.request('GET', '/v1/agents/anna', {
			headers: { 'svc-forwarded': sign(key, tenure, far, request), authorization: 'Bearer svc_wrong' },
		})
		const { payload } = await stream.waitFor((event) => event.payload?.source_ip === far.remoteAddress)
		t.match(payload, { reason: 'token_invalid' })
		stream.close()
	})

	await t.test('an upload and a download of 5 MB', async (t) => {
		const bytes = randomBytes(5 * 1024 * 1024)
		const { status, body } = await waiting.request('POST', '/v1/agents/anna/blobs?name=a.bin', {
			body: bytes,
			headers: { 'content-type': 'application/octet-stream' },
		})
		t.equal(status, 201)
		t.match(body.blob, createHash('sha256').update(bytes).digest('hex'))
		const read = await fetch(`${waiting.url}/v1/agents/anna/blobs/${body.blob}`)
		t.ok(Buffer.from(await read.arrayBuffer()).equals(bytes))
	})

	await t.test('a stream of events, resumed at the other gateway', async (t) => {
		const first = await openStream(waiting.url, { query: { agent_id: 'anna' } })
		const { run_id } = (await waiting.request('POST', '/v1/agents/anna/runs', { body: { prompt: 'go' } })).body
		const call = await model.called('go')
		await first.waitFor('run.started')
		const { lastEventId } = first
		first.close()
		call.answer('done')
		await eventually(async () => (await waiting.request('GET', `/v1/runs/${run_id}`)).body.status === 'completed')
		const second = await openStream(working.url, { query: { agent_id: 'anna' }, lastEventId })
		await second.waitFor('run.completed')
		const sequences = [...first.events, ...second.events].flatMap((one) => (one.run_id === run_id ? one.sequence : []))
		const { events } = (await waiting.request('GET', `/v1/audit?run_id=${run_id}&limit=500`)).body
		const logged = (events as { sequence: number }[]).map(({ sequence }) => sequence)
		t.strictSame(
			sequences.filter((one) => logged.includes(one)),
			logged.toSorted((a, b) => a - b),
		)
		second.close()
	})

	await t.test('a WebSocket, and one that is refused', async (t) => {
		await eventually(() => waiting.legacy() !== '')
		const address = waiting.legacy().replace('http', 'ws')
		const socket = new WebSocket(`${address}/api/agents/anna/chat/ws`)
		const frames: string[] = []
		socket.on('message', (data: Buffer) => frames.push(data.toString()))
		await once(socket, 'open')
		socket.send('{"type":"nothing that exists"}')
		await eventually(() => frames.length > 0)
		t.match(frames.join(), /error/)
		socket.close()
		await once(socket, 'close')
		const refused = new WebSocket(`${address}/nowhere`)
		const [error] = (await once(refused, 'error')) as [Error]
		t.match(error.message, /404/)
	})

	await t.test('a client that leaves ends the forwarded request', async (t) => {
		const before = gateway.status.openRequests()
		const stream = await openStream(waiting.url)
		t.equal(gateway.status.openRequests(), before + 1)
		stream.close()
		await eventually(() => gateway.status.openRequests() === before)
		// In the middle of a body.
		const half = http.request(`${waiting.url}/v1/agents/anna/blobs`, {
			method: 'POST',
			headers: { 'content-type': 'application/octet-stream', 'content-length': 1_000_000 },
		})
		half.on('error', () => {})
		half.write(Buffer.alloc(1000))
		await eventually(() => gateway.status.openRequests() === before + 1)
		half.destroy()
		await eventually(() => gateway.status.openRequests() === before)
		t.equal((await waiting.request('GET', '/v1/agents/anna')).status, 200)
	})

	await t.test('a revoked token is refused at the other gateway at once', async (t) => {
		const { token, id } = await addToken(working, ['*'])
		const stream = await openStream(waiting.url, { token })
		t.equal((await waiting.request('GET', '/v1/agents', { token })).status, 200)
		t.equal((await working.request('DELETE', `/v1/auth/tokens/${id}`)).status, 200)
		t.equal((await waiting.request('GET', '/v1/agents', { token })).status, 401)
		t.not(await stream.closed, 'closed')
	})

	await t.test('the probes show the roles', async (t) => {
		t.equal((await waiting.request('GET', '/healthz')).body, 'ok')
		t.match((await waiting.request('GET', '/readyz?verbose')).body, /^\[\+\]role waiting: requests are forwarded/m)
		t.match((await working.request('GET', '/readyz?verbose')).body, /^\[\+\]role working$/m)
		const health = await waiting.request('GET', '/v1/health')
		t.equal(health.status, 200)
		t.match(
			health.body.checks.find(({ name }: { name: string }) => name === 'role'),
			{ ok: true, message: /^waiting/ },
		)
	})

	await t.test('the metrics of the working gateway count forwarded requests', async (t) => {
		const forwarded = async (): Promise<number> =>
			Number(/^svc_forwarded_requests_total (\d+)$/m.exec((await working.request('GET', '/metrics')).body)?.[1])
		const before = await forwarded()
		t.ok(before > 0)
		t.equal((await waiting.request('GET', '/metrics')).status, 200)
		// A value may be cached for a while.
		t.equal(await eventually(forwarded, (now) => now > before), before + 1)
	})

	await t.test('another master key, or none, is refused', async (t) => {
		const other = await startMember(cluster, { env: { SVC_VAULT_KEY: randomBytes(32).toString('base64') } })
		await t.rejects(other.works, {
			code: 'config_invalid',
			message: /a different master key than the gateway .*copy the folder keys/,
		})
		await t.rejects((await startMember(cluster)).works, {
			code: 'config_invalid',
			message: /does not have its master key/,
		})
	})

	await t.test('it takes over, and requests wait for that', async (t) => {
		const stream = await openStream(waiting.url, { query: { agent_id: 'anna' } })
		const { run_id } = (await waiting.request('POST', '/v1/agents/anna/runs', { body: { prompt: 'long' } })).body
		await model.called('long')
		await stream.waitFor('run.started')
		const stopped = working.stop()
		await stream.closed
		const resumed = openStream(waiting.url, { query: { agent_id: 'anna' }, lastEventId: stream.lastEventId })
		const answer = await waiting.request('GET', `/v1/runs/${run_id}`)
		t.equal(answer.status, 200)
		await stopped
		await waiting.works
		;(await model.called('long', 2)).answer('the end')
		const next = await resumed
		await next.waitFor('run.completed')
		next.close()
		t.match((await waiting.request('GET', '/readyz?verbose')).body, /^\[\+\]role working$/m)
	})
	t.equal((await send(`${waiting.url}/healthz`, 'GET')).status, 200)
})

void t.test('svc states when a waiting gateway applies a changed setting', { skip: withoutNats() }, async (t) => {
	const cluster = await startNats()
	const working = await startMember(cluster)
	const waiting = await startMember(cluster, { keysOf: working.home })
	t.teardown(async () => {
		await waiting.stop()
		await cluster[Symbol.asyncDispose]()
	})
	const svc = svcFor({ home: waiting.home })
	const change = await svc(['config', 'set', 'runs.limits.steps', '20'])
	t.equal(change.code, 0)
	t.match(change.stderr, /waits, and applies it when it takes over\. Make the same change on every gateway/)
	await working.stop()
	await waiting.works
	await eventually(async () => (await svc(['config', 'get', 'runs.limits.steps'])).stdout.trim() === '20')
	t.match((await svc(['config', 'set', 'runs.limits.steps', '21'])).stdout, 'The running gateway uses it')
})
