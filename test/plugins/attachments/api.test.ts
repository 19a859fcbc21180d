/** Attachments over HTTP: upload, use in runs, records and events, download, and deletion. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import t from 'tap'
import type { AgentRef } from '../../../core/plugin.ts'
import { contextProbe } from '../../support/context-probe.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Answer, Reply, TestGateway } from '../../support/gateway.ts'
import { dataUrl, pdf, png } from '../../support/files.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { follow } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'

const files = await listenOnLoopback(
	createServer((request, response) => {
		if (request.url === '/photo%20one.png?size=1')
			response.writeHead(200, { 'content-type': 'image/png' }).end(png('w'))
		else if (request.url === '/large') response.writeHead(200).end(Buffer.alloc(2 * 1024 * 1024))
		else if (request.url === '/redirect') response.writeHead(302, { location: 'http://127.0.0.1:9/secret' }).end()
		else response.writeHead(404).end('no such file')
	}),
)
t.teardown(() => files.stop())

const probe = contextProbe()
const gateway = await startGateway({
	config: `attachments: {max_mib: 1, max_mib_per_message: 2, max_per_message: 4, allowed_hosts: ["127.0.0.1:${files.port}"]}\nplugins: {probe: true}\n`,
	files: probe.files,
})
t.teardown(() => gateway.stop())
const ctx = probe.context()

const octets = { 'content-type': 'application/octet-stream' }
const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const upload = (agent: string, bytes: Buffer, query = ''): Promise<Reply<Answer>> =>
	gateway.request('POST', `/v1/agents/${agent}/blobs${query}`, { body: bytes, headers: octets })
const start = (agent: string, body: object): Promise<Reply<Answer>> =>
	gateway.request('POST', `/v1/agents/${agent}/runs`, { body })
const read = async (agent: string, blob: string): Promise<{ status: number; headers: Headers; bytes: Buffer }> => {
	const response = await fetch(`${gateway.url}/v1/agents/${agent}/blobs/${blob}`)
	return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
}

void t.test('a file is uploaded, attached to a run and downloaded', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const uploaded = await upload('ada', png(), '?name=..%2Ffolder%2Fphoto.png')
	t.equal(uploaded.status, 201)
	const image = { type: 'image', blob: digestOf(png()), media_type: 'image/png', size: png().length }
	t.strictSame(uploaded.body, { ...image, name: 'photo.png' })

	const { blob, name } = uploaded.body
	const started = await start('ada', {
		prompt: 'Look.',
		attachments: [{ blob, name }, { data: pdf().toString('base64') }],
	})
	t.equal(started.status, 200, JSON.stringify(started.body))
	const { run_id } = started.body
	await ada.ended(run_id)
	const document = { type: 'file', blob: digestOf(pdf()), media_type: 'application/pdf', size: pdf().length }
	const attachments = [{ ...image, name: 'photo.png' }, document]
	t.match(await ada.read(run_id), { prompt: 'Look.', attachments })
	const message = ada.eventsOf(run_id).find(({ event_type }) => event_type === 'message.user')
	t.strictSame(message?.payload, { content: 'Look.', attachments, actor: { kind: 'local' } })
	t.match((await ada.call('history')).body, [{ role: 'user', content: 'Look.', attachments }, { role: 'assistant' }])

	const download = await read('ada', image.blob)
	t.equal(download.status, 200)
	t.ok(download.bytes.equals(png()))
	t.match(Object.fromEntries(download.headers), {
		'content-type': 'image/png',
		'content-length': String(png().length),
		'content-disposition': 'attachment',
		'x-content-type-options': 'nosniff',
		'content-security-policy': /sandbox/,
	})
})

void t.test('markup is served as bytes that no browser executes', async (t) => {
	await follow(t, gateway, 'mark')
	for (const text of [
		'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
		'<html><script>1</script>',
		'plain',
	]) {
		const { body } = await upload('mark', Buffer.from(text))
		t.equal(body.type, 'file')
		const { headers } = await read('mark', body.blob)
		t.equal(headers.get('content-type'), 'application/octet-stream')
		t.equal(headers.get('x-content-type-options'), 'nosniff')
	}
})

void t.test('the prompt is optional only with attachments', async (t) => {
	const bob = await follow(t, gateway, 'bob')
	const { status, body } = await start('bob', { attachments: [{ data: dataUrl('image/png', png('b')) }] })
	t.equal(status, 200)
	await bob.ended(body.run_id)
	t.match(await bob.read(body.run_id), { prompt: '', attachments: [{ type: 'image' }] })
	for (const invalid of [{}, { attachments: [] }, { prompt: '' }]) {
		const reply = await start('bob', invalid)
		t.equal(reply.status, 400, JSON.stringify(invalid))
		t.equal(reply.body.errors?.[0]?.path, 'prompt')
	}
})

void t.test('attachments are fetched from allowed addresses only', async (t) => {
	const carl = await follow(t, gateway, 'carl')
	const attach = (url: string): Promise<Reply<Answer>> => start('carl', { prompt: 'Look.', attachments: [{ url }] })
	const { body } = await attach(`${files.url}/photo%20one.png?size=1`)
	await carl.ended(body.run_id)
	t.match(await carl.read(body.run_id), { attachments: [{ blob: digestOf(png('w')), name: 'photo one.png' }] })

	t.match(await attach(`${files.url}/missing`), { status: 400, body: { message: /status 404/ } })
	t.match(await attach(`${files.url}/large`), { status: 400, body: { message: /larger than 1048576 bytes/ } })
	t.match(await attach('http://127.0.0.1:9/x'), {
		status: 400,
		body: { code: 'address_refused', message: /allowed_hosts/ },
	})
	t.match(await attach(`${files.url}/redirect`), { status: 400, body: { code: 'address_refused' } })
	t.match(await attach('file:///etc/passwd'), { status: 400, body: { code: 'address_refused' } })
	const { body: audit } = await gateway.request('GET', '/v1/audit?agent_id=carl&event_type=security.violation')
	t.match(audit.events, [{ payload: { reason: 'address_refused' } }])
})

void t.test('errors of invalid and too large attachments state what to change', async (t) => {
	await follow(t, gateway, 'dora')
	const attach = (...attachments: object[]): Promise<Reply<Answer>> => start('dora', { prompt: 'Look.', attachments })
	const file = (n: number, size: number): object => ({ data: Buffer.alloc(size, n).toString('base64') })
	t.match(await attach(file(1, 1_100_000)), { status: 413, body: { code: 'payload_too_large' } })
	t.match(await upload('dora', Buffer.alloc(1_100_000)), { status: 413, body: { message: /max_mib\)/ } })
	const uploads = await Promise.all([1, 2, 3, 4].map((n) => upload('dora', Buffer.alloc(700_000, n))))
	const blobs = uploads.map(({ body }) => ({ blob: body.blob }))
	t.match(await attach(...blobs), { status: 413, body: { message: /max_mib_per_message/ } })
	t.match(await attach(...[1, 2, 3, 4, 5].map((n) => file(n, 10))), {
		status: 400,
		body: { message: /max_per_message/ },
	})
	t.match(await attach({ data: 'no base64!' }), { status: 400, body: { message: /not base64/ } })
	// A regular expression that backtracks over the blanks would block the gateway for minutes.
	t.match(await attach({ data: `${' '.repeat(800_000)}!` }), { status: 400, body: { message: /not base64/ } })
	t.match(await attach({ data: 'AAA=AAAA' }), { status: 400, body: { message: /not base64/ } })
	t.match(await attach(file(1, 10), { data: '' }), { status: 400 })
	t.match(await attach({ blob: digestOf(png('never')) }), { status: 400, body: { message: /no such blob/ } })
	// A known or guessed digest reveals neither the bytes of another agent's blob nor that the blob exists.
	await upload('ada', png('of ada'))
	t.strictSame((await read('ada', digestOf(png('of ada')))).bytes, png('of ada'))
	const guessed = await attach({ blob: digestOf(png('of ada')) })
	const unknown = await attach({ blob: digestOf(png('never')) })
	t.equal(guessed.status, 400)
	t.equal(guessed.body.message, unknown.body.message)
	t.equal((await read('dora', digestOf(png('of ada')))).status, 404)
	t.match(await attach({ blob: digestOf(png()), url: 'https://example.com' }), { status: 400 })
	t.match(await upload('dora', Buffer.alloc(0)), { status: 400, body: { message: /empty/ } })
	t.match(await upload('nobody', png()), { status: 404 })
	t.equal((await read('dora', digestOf(png('never')))).status, 404)
	t.equal((await read('dora', 'sha256:..')).status, 400)
	t.equal((await read('nobody', digestOf(png()))).status, 404)
})

void t.test('a blob is deleted with the last conversation that uses it', async (t) => {
	const eve = await follow(t, gateway, 'eve')
	const agent: AgentRef = await ctx.use('agents').get('eve')
	const inConversation = async (conversation: string, ...marks: string[]): Promise<void> => {
		const attachments = await ctx.use('attachments').take(
			agent,
			marks.map((mark) => ({ bytes: png(mark) })),
		)
		const { run_id } = await ctx.use('runs').start(agent, { prompt: 'x', attachments, trigger: 'api', conversation })
		await eve.ended(run_id)
	}
	const session = await ctx.use('runs').session(agent)
	await inConversation(session, 'shared', 'own')
	await inConversation('other', 'shared')
	await ctx.use('runs').clear(agent)
	t.equal((await read('eve', digestOf(png('own')))).status, 404)
	t.equal((await read('eve', digestOf(png('shared')))).status, 200)
	await gateway.request('DELETE', '/v1/agents/eve')
	t.equal((await read('eve', digestOf(png('shared')))).status, 404)
})

void t.test('deleting a blob during its download closes the connection', async (t) => {
	const other = await startGateway()
	t.teardown(() => other.stop())
	await other.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const bytes = Buffer.alloc(19 * 1024 * 1024) // larger than the buffers of a socket
	t.equal((await other.request('POST', '/v1/agents/ada/blobs', { body: bytes, headers: octets })).status, 201)
	const { hostname, port } = new URL(other.url)
	const socket = connect(Number(port), hostname)
	t.teardown(() => socket.destroy())
	const head = `host: ${hostname}:${port}\r\n`
	// A client that cannot see the end of the first response would read the second one as bytes of the file.
	socket.write(`GET /v1/agents/ada/blobs/${digestOf(bytes)} HTTP/1.1\r\n${head}\r\n`)
	socket.write(`GET /v1/health HTTP/1.1\r\n${head}connection: close\r\n\r\n`)
	await once(socket, 'readable')
	await other.request('DELETE', '/v1/agents/ada')
	let answer = ''
	socket.on('data', (part) => (answer += part.toString('latin1'))).on('error', () => {})
	await once(socket, 'close')
	t.ok(answer.length < bytes.length)
	t.equal(answer.split('HTTP/1.1 200').length - 1, 1)
})

void t.test('an idempotency key with different attachments is a mismatch', async (t) => {
	const fay = await follow(t, gateway, 'fay')
	const startWithKey = (mark: string): Promise<Reply<Answer>> =>
		gateway.request('POST', '/v1/agents/fay/runs', {
			body: { prompt: 'Look.', attachments: [{ data: png(mark).toString('base64') }] },
			headers: { 'idempotency-key': 'one' },
		})
	const first = await startWithKey('a')
	t.equal((await startWithKey('a')).body.run_id, first.body.run_id)
	t.match(await startWithKey('b'), { status: 409, body: { code: 'idempotency_mismatch' } })
	await fay.ended(first.body.run_id)
})

/** Sends the first `sent` bytes of an upload of `size` bytes. */
async function beginUpload(
	{ url }: TestGateway,
	agent: string,
	{ size, sent, token }: { size: number; sent: number; token?: string },
): Promise<{ socket: Socket; response(): string }> {
	const { hostname, port } = new URL(url)
	const socket = connect(Number(port), hostname)
	socket.on('error', () => {}) // the gateway may have closed it
	t.teardown(() => socket.destroy())
	await once(socket, 'connect')
	let text = ''
	socket.setEncoding('utf8').on('data', (part: string) => (text += part))
	const authorization = token === undefined ? '' : `authorization: Bearer ${token}\r\n`
	socket.write(
		`POST /v1/agents/${agent}/blobs HTTP/1.1\r\nhost: ${hostname}:${port}\r\n${authorization}content-length: ${size}\r\n\r\n`,
	)
	socket.write(Buffer.alloc(sent))
	return { socket, response: () => text }
}

void t.test('revoking a token ends its upload, and no bytes are kept', async (t) => {
	const probe = contextProbe()
	const other = await startGateway({ config: 'plugins: {probe: true}\n', files: probe.files })
	t.teardown(() => other.stop())
	const { store, use } = probe.context()
	await other.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const { uid } = await use('agents').get('ada')
	const stored = async (...kinds: string[]): Promise<number> => {
		let count = 0
		for (const kind of kinds) for await (const _ of store.keys([`agent:${uid}`, kind])) count++
		return count
	}
	const created = await other.request('POST', '/v1/auth/tokens', { body: { scopes: ['runs:write'], agents: ['ada'] } })
	const MIB = 1024 * 1024
	const { response } = await beginUpload(other, 'ada', { size: 4 * MIB, sent: 3 * MIB, token: created.body.token })
	await eventually(
		() => stored('blob-loose'),
		(count) => count > 0,
	)
	await other.request('DELETE', `/v1/auth/tokens/${created.body.id}`)
	await eventually(response, (text) => text.includes('no longer valid'))
	t.match(response(), /^HTTP\/1\.1 401 /)
	t.equal(await stored('blob', 'blob-bytes', 'blob-loose'), 0)
})

void t.test('a client above the limit of concurrent uploads gets Retry-After', async (t) => {
	await follow(t, gateway, 'gil')
	// More than 128, because an upload below may be accepted before one of these.
	const open = await Promise.all(
		Array.from({ length: 160 }, () => beginUpload(gateway, 'gil', { size: 1000, sent: 10 })),
	)
	const rejected = await eventually(
		() => upload('gil', png()),
		({ status }) => status !== 201,
	)
	t.match(rejected, { status: 503, body: { message: /128 uploads are in progress/ } })
	t.ok(rejected.headers.get('retry-after'))
	for (const { socket } of open) socket.destroy()
	await eventually(
		() => upload('gil', png()),
		({ status }) => status === 201,
	)
})

void t.test('one token cannot use up the uploads of all tokens', async (t) => {
	await follow(t, gateway, 'hal')
	const tokenOf = async (): Promise<string> => {
		const body = { scopes: ['runs:write'], agents: ['hal'] }
		return (await gateway.request('POST', '/v1/auth/tokens', { body })).body.token
	}
	const [busy, idle] = [await tokenOf(), await tokenOf()]
	const uploadWith = (token: string): Promise<Reply<Answer>> =>
		gateway.request('POST', '/v1/agents/hal/blobs', { token, body: png(), headers: octets })
	await Promise.all(
		Array.from({ length: 128 }, () => beginUpload(gateway, 'hal', { size: 1000, sent: 10, token: busy })),
	)
	const reply = await eventually(
		() => uploadWith(busy),
		({ status }) => status !== 201,
	)
	t.match(reply, {
		status: 429,
		body: { code: 'rate_limited', message: /of 128 uploads are in progress with your token/ },
	})
	t.equal((await uploadWith(idle)).status, 201)
})
