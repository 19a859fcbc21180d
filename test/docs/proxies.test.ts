/** The reverse proxies of docs/deploy in front of a gateway. Those that are not installed are skipped. */
import { spawn, spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { on, once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import WebSocket from 'ws'
import { addToken } from '../support/add.ts'
import { testFolder } from '../support/folder.ts'
import { gatewayFor } from '../support/gateway.ts'
import type { Answer, TestGateway } from '../support/gateway.ts'
import { freePort } from '../support/free-ports.ts'
import { WAIT_LIMIT_MS, eventually } from '../support/wait.ts'

const MIB = 2 ** 20
const deploy = (name: string): string => readFileSync(new URL(`../../docs/deploy/${name}`, import.meta.url), 'utf8')

void t.test('nginx', { skip: !has('nginx', '-v') || !has('openssl', 'version') }, async (t) => {
	const gateway = await gatewayFor(t)
	const { folder, port } = await place(t)
	const { status } = spawnSync(
		'openssl',
		`req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -keyout key.pem -out cert.pem`.split(
			' ',
		),
		{ cwd: folder },
	)
	t.equal(status, 0, 'openssl created a certificate')
	const { host, legacyHost } = addressesOf(gateway)
	const site = replaced(deploy('nginx.conf'), {
		'127.0.0.1:3000': host,
		'127.0.0.1:17890': legacyHost,
		'listen 443': `listen 127.0.0.1:${port}`,
		'listen [::]:443 ssl http2;': '',
		'/etc/ssl/gateway.example.com.pem': join(folder, 'cert.pem'),
		'/etc/ssl/private/gateway.example.com.key': join(folder, 'key.pem'),
		'/var/log/nginx/svc-gateway.log': join(folder, 'access.log'),
	})
	const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
		(name) => `${name}_temp_path ${join(folder, name)};`,
	)
	writeFileSync(join(folder, 'site.conf'), site)
	writeFileSync(
		join(folder, 'nginx.conf'),
		// Its workers must be able to write to the folder of this test.
		`${process.getuid?.() === 0 ? 'user root;' : ''}
		daemon off; pid ${join(folder, 'pid')}; error_log stderr warn;
		events {}
		http { ${temporary.join(' ')} include ${join(folder, 'site.conf')}; }`,
	)
	start(t, 'nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')])
	await checkProxy(t, gateway, port)
	t.match(readFileSync(join(folder, 'access.log'), 'utf8'), /"POST \/v1\/agents" 201 .* [0-9a-f]{32}$/m)
})

void t.test('caddy', { skip: !has('caddy', 'version') }, async (t) => {
	const gateway = await gatewayFor(t)
	const { folder, port } = await place(t)
	const { host, legacyHost } = addressesOf(gateway)
	const globalOptions = `{
		admin off
		local_certs
		skip_install_trust
		auto_https disable_redirects
		storage file_system ${join(folder, 'storage')}
	}`
	writeFileSync(join(folder, 'Caddyfile'), `${globalOptions}\n${deploy('Caddyfile')}`)
	start(t, 'caddy', ['run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')], {
		PATH: process.env.PATH,
		HOME: folder,
		SVC_SITE: `https://localhost:${port}`,
		SVC_GATEWAY: host,
		SVC_CHAT: legacyHost,
	})
	// Caddy does not forward a refusal that arrives before it has sent the complete body.
	await checkProxy(t, gateway, port, [413, 502])
})

/** The requirements of every proxy, with a gateway in loopback mode. `refusals`: the statuses for a body that is too large. */
async function checkProxy(t: Test, gateway: TestGateway, port: number, refusals = [413]): Promise<void> {
	const { token } = await addToken(gateway, ['*'])
	const headers = { authorization: `Bearer ${token}` }
	const ask = (path: string, options: RequestOptions = {}): Promise<Response> => requestAt(port, path, options)
	await eventually(
		() => ask('/readyz').catch((error: Error) => error),
		(found) => 'status' in found && found.status === 200,
	)

	t.equal((await gateway.request('GET', '/v1/agents')).status, 200, 'a local request needs no token')
	const unauthorized = await ask('/v1/agents')
	t.equal(unauthorized.status, 401, 'a request through a local proxy needs a token')
	t.match(unauthorized.json().message, /x-forwarded-/i)
	t.equal((await ask('/metrics', { headers })).status, 404, 'metrics are not public')
	t.equal((await ask('/docs')).status, 200)

	const made = await ask('/v1/agents', { headers, body: { name: 'ada' } })
	t.equal(made.status, 201)
	t.match(made.headers['x-request-id'], /^[\w.-]+$/)

	// The stream never ends, so this reads only what the proxy forwards without buffering.
	const stream = await openAt(port, '/v1/events/stream?agent_id=ada', { headers })
	const prompt = '/tool ask {"question": "Which city?"}'
	const { run_id } = (await ask('/v1/agents/ada/runs', { headers, body: { prompt } })).json()
	await readUntil(stream, (text) => text.includes('"run.paused"') && text.includes(run_id))
	t.equal(stream.headers['content-type'], 'text/event-stream')
	stream.destroy()

	const stop = await ask('/v1/agents/ada/stop', { headers, body: {} })
	t.equal(stop.status, 200)
	t.equal((await ask('/v1/agents/ada/reset', { headers, body: {} })).status, 200)
	const chat = await openAt(port, '/api/agents/ada/chat/stream?message=hello', { headers })
	await readUntil(chat, (text) => text.includes('event: done'))

	const host = `localhost:${port}`
	const tls = { servername: 'localhost', rejectUnauthorized: false }
	const chatAt = `wss://127.0.0.1:${port}/api/agents/ada/chat/ws`
	const socket = new WebSocket(chatAt, { ...tls, headers: { ...headers, host } })
	await once(socket, 'open')
	socket.send(JSON.stringify({ message: 'hello' }))
	for await (const [data] of onMessage(socket)) {
		const frame = JSON.parse(data.toString()) as Answer
		t.not(frame.type, 'error')
		if (frame.type === 'done') break
	}
	socket.close()
	await once(socket, 'close')
	const refused = new WebSocket(chatAt, { ...tls, headers: { host } })
	const [error] = (await once(refused, 'error').catch((thrown: unknown) => [thrown])) as [Error]
	t.match(error.message, '401', 'a WebSocket needs a token, too')

	const large = `---\nname: large\ndescription: A large skill.\n---\n\n${'Words. '.repeat(30_000)}`
	t.equal((await ask('/v1/agents/ada/skills/install', { headers, body: { content: large } })).status, 201)
	const sized = (bytes: number): Promise<Response> =>
		ask('/v1/agents/ada/runs', { headers, body: { prompt: 'x'.repeat(bytes) } })
	t.ok(refusals.includes((await sized(1.5 * MIB)).status), 'too large for the gateway')
	t.ok(refusals.includes((await sized(5 * MIB)).status), 'too large for the proxy')

	const hook = (await ask('/v1/agents/ada/webhooks', { headers, body: { slug: 'deploys' } })).json()
	const body = '{"event":"deployed"}'
	const signature = createHmac('sha256', hook.secret as string)
		.update(body)
		.digest('hex')
	const delivered = await ask(new URL(hook.url as string).pathname, {
		headers: { 'x-signature': `sha256=${signature}` },
		body,
	})
	t.equal(delivered.status, 200, 'a webhook needs its signature and no token')
}

interface RequestOptions {
	headers?: Record<string, string>
	/** Sent as JSON; a string is sent unchanged. */
	body?: unknown
}

interface Response {
	status: number
	headers: IncomingMessage['headers']
	text: string
	json(): Answer
}

async function requestAt(port: number, path: string, options: RequestOptions): Promise<Response> {
	const response = await openAt(port, path, options)
	const chunks: Buffer[] = []
	for await (const chunk of response) chunks.push(chunk as Buffer)
	const text = Buffer.concat(chunks).toString()
	return {
		status: response.statusCode ?? 0,
		headers: response.headers,
		text,
		json: () => JSON.parse(text) as Answer,
	}
}

function openAt(port: number, path: string, { headers = {}, body }: RequestOptions): Promise<IncomingMessage> {
	const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
	return new Promise((resolve, reject) => {
		const request = httpsRequest(
			{
				port,
				path,
				host: '127.0.0.1',
				servername: 'localhost',
				method: text === undefined ? 'GET' : 'POST',
				headers: {
					...(text !== undefined && { 'content-type': 'application/json' }),
					...headers,
					host: `localhost:${port}`,
				},
				// The certificate is self-signed.
				rejectUnauthorized: false,
				agent: false,
			},
			resolve,
		)
		// A proxy that refuses a body may close the connection before its end.
		request.on('error', reject)
		request.end(text)
	})
}

async function readUntil(stream: IncomingMessage, enough: (text: string) => boolean): Promise<void> {
	let text = ''
	const late = setTimeout(() => stream.destroy(new Error(`timed out; the stream so far:\n${text}`)), WAIT_LIMIT_MS)
	try {
		for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
			text += (chunk as Buffer).toString()
			if (enough(text)) return
		}
		throw new Error(`the stream ended early:\n${text}`)
	} finally {
		clearTimeout(late)
	}
}

/** Buffers messages that arrive while none is awaited. */
function onMessage(socket: WebSocket): AsyncIterable<[Buffer]> {
	return on(socket, 'message', { signal: AbortSignal.timeout(WAIT_LIMIT_MS) }) as AsyncIterable<[Buffer]>
}

function has(program: string, version: string): boolean {
	return spawnSync(program, [version], { stdio: 'ignore' }).status === 0
}

function addressesOf({ url, running }: TestGateway): { host: string; legacyHost: string } {
	return { host: new URL(url).host, legacyHost: new URL(running.gateway.status.url('legacy') ?? '').host }
}

/** A folder, and a free port. */
async function place(t: Test): Promise<{ folder: string; port: number }> {
	const folder = testFolder(t)
	mkdirSync(join(folder, 'storage'))
	return { folder, port: await freePort() }
}

/** Throws if a text is missing, since the test would otherwise check another file than users read. */
function replaced(text: string, by: Record<string, string>): string {
	for (const [from, to] of Object.entries(by)) {
		if (!text.includes(from)) throw new Error(`the file does not contain ${from}`)
		text = text.replaceAll(from, to)
	}
	return text
}

function start(t: Test, program: string, args: string[], env?: NodeJS.ProcessEnv): void {
	const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], ...(env && { env }) })
	let errors = ''
	child.stderr.on('data', (data: Buffer) => (errors = (errors + data.toString()).slice(-16 * 1024)))
	const ended = once(child, 'exit')
	t.teardown(async () => {
		child.kill('SIGTERM')
		await ended
		if (!t.passing()) t.comment(errors)
	})
}
