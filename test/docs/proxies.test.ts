/** The reverse proxies of docs/deploy, as they stand there, in front of a gateway. Where a program is not installed, its part is skipped. */
import { spawn, spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { on, once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import WebSocket from 'ws'
import { startGateway } from '../support/gateway.ts'
import type { Answer, TestGateway } from '../support/gateway.ts'
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
	t.equal(status, 0, 'openssl made a certificate')
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
		// Its workers must be able to write into this test's folder.
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
	const own = `{
		admin off
		local_certs
		skip_install_trust
		auto_https disable_redirects
		storage file_system ${join(folder, 'storage')}
	}`
	writeFileSync(join(folder, 'Caddyfile'), `${own}\n${deploy('Caddyfile')}`)
	start(t, 'caddy', ['run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')], {
		PATH: process.env.PATH,
		HOME: folder,
		SVC_SITE: `https://localhost:${port}`,
		SVC_GATEWAY: host,
		SVC_CHAT: legacyHost,
	})
	// It tells nothing of a refusal that came before it had sent all of the body.
	await checkProxy(t, gateway, port, [413, 502])
})

/** What every proxy in front of a gateway must do; the gateway is in loopback mode. `refusals`: of a body that is too large. */
async function checkProxy(t: Test, gateway: TestGateway, port: number, refusals = [413]): Promise<void> {
	const { token } = (await gateway.request('POST', '/v1/auth/tokens', { body: { scopes: ['*'] } })).body
	const headers = { authorization: `Bearer ${token}` }
	const ask = (path: string, options: AskOptions = {}): Promise<Asked> => askAt(port, path, options)
	await eventually(
		() => ask('/readyz').catch((error: Error) => error),
		(found) => 'status' in found && found.status === 200,
	)

	t.equal((await gateway.request('GET', '/v1/agents')).status, 200, 'on this machine no token is needed')
	const stranger = await ask('/v1/agents')
	t.equal(stranger.status, 401, 'through the proxy one is needed, though it calls from this machine as localhost')
	t.match(stranger.json().message, /x-forwarded-/i)
	t.equal((await ask('/metrics', { headers })).status, 404, 'the numbers are not for the world')
	t.equal((await ask('/docs')).status, 200)

	const made = await ask('/v1/agents', { headers, body: { name: 'ada' } })
	t.equal(made.status, 201)
	t.match(made.headers['x-request-id'], /^[\w.-]+$/)

	// It never ends by itself: what is read of it was passed on while it was open.
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
	const sized = (bytes: number): Promise<Asked> =>
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

interface AskOptions {
	headers?: Record<string, string>
	/** JSON; a string goes as it is. */
	body?: unknown
}

interface Asked {
	status: number
	headers: IncomingMessage['headers']
	text: string
	json(): Answer
}

async function askAt(port: number, path: string, options: AskOptions): Promise<Asked> {
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

function openAt(port: number, path: string, { headers = {}, body }: AskOptions): Promise<IncomingMessage> {
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
				// The proxy makes its own certificate.
				rejectUnauthorized: false,
				agent: false,
			},
			resolve,
		)
		// A proxy that refuses a body need not read it to its end.
		request.on('error', reject)
		request.end(text)
	})
}

async function readUntil(stream: IncomingMessage, enough: (text: string) => boolean): Promise<void> {
	let text = ''
	const late = setTimeout(
		() => stream.destroy(new Error(`what was waited for did not come; this did:\n${text}`)),
		WAIT_LIMIT_MS,
	)
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

/** Keeps what comes while nobody looks. */
function onMessage(socket: WebSocket): AsyncIterable<[Buffer]> {
	return on(socket, 'message', { signal: AbortSignal.timeout(WAIT_LIMIT_MS) }) as AsyncIterable<[Buffer]>
}

function has(program: string, version: string): boolean {
	return spawnSync(program, [version], { stdio: 'ignore' }).status === 0
}

async function gatewayFor(t: Test): Promise<TestGateway> {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	return gateway
}

function addressesOf({ url, running }: TestGateway): { host: string; legacyHost: string } {
	return { host: new URL(url).host, legacyHost: new URL(running.gateway.status.url('legacy') ?? '').host }
}

/** A folder, and a port that is free. */
async function place(t: Test): Promise<{ folder: string; port: number }> {
	const folder = mkdtempSync(join(tmpdir(), 'svc-proxy-'))
	mkdirSync(join(folder, 'storage'))
	t.teardown(() => rmSync(folder, { recursive: true, force: true }))
	const server = createServer().listen(0, '127.0.0.1')
	await once(server, 'listening')
	const { port } = server.address() as AddressInfo
	server.close()
	await once(server, 'close')
	return { folder, port }
}

/** Each of the texts must be there, or the test would try another file than the one that people read. */
function replaced(text: string, by: Record<string, string>): string {
	for (const [from, to] of Object.entries(by)) {
		if (!text.includes(from)) throw new Error(`the file does not say ${from}`)
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
