/** What the gateway passes to a server: its environment, its headers, and secrets, under a grant only. */
import { readFileSync, readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { add, callTool, servers, stdio, until } from '../../support/mcp.ts'
import { follow } from '../../support/runs.ts'

const gateway = await startGateway({
	env: {
		HOME: '/home/somebody',
		PATH: process.env.PATH,
		LANG: 'C.UTF-8',
		HTTPS_PROXY: 'http://proxy.example.com:3128',
		HTTP_PROXY: 'http://me:password@proxy.example.com:3128',
		SSL_CERT_FILE: '/etc/ssl/company.pem',
		OPENAI_API_KEY_OF_MINE: 'sk-private',
		NODE_OPTIONS: '--no-warnings',
	},
})
t.teardown(() => gateway.stop())

const post = async (path: string, body: object): Promise<Answer> => (await gateway.request('POST', path, { body })).body

void t.test('a process gets the safe variables, its own env, a proxy without password, an empty folder', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const { id } = await add(ada, { ...stdio('own', servers.fixture), env: { LEVEL: 'debug-everything', EMPTY: '' } })
	const { env, cwd } = JSON.parse((await callTool(ada, 'mcp__own__environment')).result)
	const { SVC_MCP_PROCESS: mark, ...rest } = env
	t.match(mark, /^[0-9a-f]{32}$/)
	t.strictSame(rest, {
		HOME: '/home/somebody',
		PATH: process.env.PATH,
		LANG: 'C.UTF-8',
		HTTPS_PROXY: 'http://proxy.example.com:3128',
		SSL_CERT_FILE: '/etc/ssl/company.pem',
		LEVEL: 'debug-everything',
		EMPTY: '',
	})
	t.equal(cwd, join(gateway.home, 'run/mcp', mark))
	t.strictSame(readdirSync(cwd), [])
	t.strictSame(JSON.parse((await callTool(ada, 'mcp__own__client')).result), {
		name: 'svc-gateway',
		title: 'Agent Gateway',
		version: gateway.running.gateway.status.version,
	})
	const { body } = await ada.call(`mcp/${id}`)
	t.strictSame(body.env, { EMPTY: null, LEVEL: null }, 'names without values')
})

void t.test('a value that a program printed stays redacted after it has ended', async (t) => {
	const abe = await follow(t, gateway, 'abe')
	const program = 'console.error(`my key is ${process.env.KEY}`); process.exit(1)'
	const { id } = await add(abe, { ...stdio('own', '-e', program), env: { KEY: 'the-literal-value-1' } })
	const ended = await until(gateway, 'abe', id, ({ pid, stderr }) => pid === null && stderr !== '')
	t.match(ended.stderr, /^my key is \[KEY\]$/m)
	t.match(ended.last_error.message, /my key is \[KEY\]/)
	const { body } = await gateway.request('PATCH', `/v1/agents/abe/mcp/${id}`, { body: { enabled: false } })
	t.equal(body.status, 'disabled')
	t.notMatch(JSON.stringify((await abe.call(`mcp/${id}`)).body), /literal/)
})

void t.test('a secret needs a grant; deleting the grant ends the connection', async (t) => {
	const bea = await follow(t, gateway, 'bea')
	const secret = await post('/v1/vault/secrets', { name: 'TOKEN', value: 'the-secret-value-1' })
	const { id } = await add(bea, {
		...stdio('own', servers.fixture),
		env: { TOKEN: { secret: 'TOKEN' }, LINE: 'Bearer {{secret:TOKEN}}' },
	})
	const denied = await until(gateway, 'bea', id, ({ status }) => status === 'error')
	t.match(denied.last_error.message, /no grant for a secret "TOKEN"/)
	t.match((await bea.stream.waitFor('vault.denied')).payload, { secret: 'TOKEN', via: 'mcp:own' })

	const { grant_id } = await post('/v1/vault/grants', { agent_id: 'bea', secret_id: secret.id })
	await until(gateway, 'bea', id, ({ status }) => status === 'connected')
	t.match((await bea.stream.waitFor('vault.accessed')).payload, { secret: 'TOKEN', via: 'mcp:own' })
	const shown = await callTool(bea, 'mcp__own__environment')
	t.match(shown.result, /"TOKEN":"\[redacted:TOKEN\]"/)
	t.match(shown.result, /"LINE":"Bearer \[redacted:TOKEN\]"/)
	const { body } = await bea.call(`mcp/${id}`)
	t.strictSame(body.env, { LINE: null, TOKEN: { secret: 'TOKEN' } })

	await gateway.request('DELETE', `/v1/vault/grants/${grant_id}`)
	await until(gateway, 'bea', id, ({ status }) => status === 'error')
	t.notMatch(JSON.stringify(bea.stream.events), /the-secret-value/)
})

void t.test('a handle in the arguments of a call is replaced for the server only', async (t) => {
	const cleo = await follow(t, gateway, 'cleo')
	const secret = await post('/v1/vault/secrets', { name: 'HANDLE', value: 'the-secret-value-2' })
	await add(cleo, stdio('own', servers.fixture))
	const args = { text: 'a {{secret:HANDLE}} z' }
	t.match(await callTool(cleo, 'mcp__own__echo', args), { event_type: 'mcp.failed', code: 'vault_denied' })
	await post('/v1/vault/grants', { agent_id: 'cleo', secret_id: secret.id })
	const run_id = await cleo.complete(`/tool mcp__own__echo ${JSON.stringify(args)}`)
	t.match((await cleo.waitFor(run_id, 'mcp.called')).payload.arguments, /\{\{secret:HANDLE\}\}/)
	t.equal((await cleo.waitFor(run_id, 'mcp.result')).payload.result, 'a [redacted:HANDLE] z')
	t.match(cleo.typesOf(run_id).join(), /mcp\.called,vault\.accessed,(security\.redacted,)*mcp\.result/)
})

void t.test('headers are sent to the server only', async (t) => {
	const received: IncomingHttpHeaders[] = []
	const redirected: IncomingHttpHeaders[] = []
	const target = await listenOnLoopback(
		createServer((request, response) => {
			redirected.push(request.headers)
			response.writeHead(401).end()
		}),
	)
	t.teardown(target.stop)
	const web = await listenOnLoopback(
		createServer((request, response) => {
			received.push(request.headers)
			response.writeHead(307, { location: `${target.url}/mcp` }).end()
		}),
	)
	t.teardown(web.stop)
	const secret = await post('/v1/vault/secrets', { name: 'KEY', value: 'the-secret-value-3' })
	const dora = await follow(t, gateway, 'dora')
	await post('/v1/vault/grants', { agent_id: 'dora', secret_id: secret.id })
	const { id } = await add(dora, {
		name: 'web',
		transport: 'http',
		url: `${web.url}/mcp`,
		headers: { Authorization: 'Bearer {{secret:KEY}}', 'X-Team': 'blue' },
	})
	t.match(received[0], { authorization: 'Bearer the-secret-value-3', 'x-team': 'blue' })
	t.strictSame(redirected, [], 'a redirect to another origin is not followed')
	const { body } = await dora.call(`mcp/${id}`)
	t.not(body.status, 'connected')
	t.strictSame(body.headers, { Authorization: null, 'X-Team': null })
	t.notMatch(JSON.stringify([body, dora.stream.events]), /the-secret-value/)
})

void t.test('values are not on the disk in plain text', async (t) => {
	const emma = await follow(t, gateway, 'emma')
	await add(emma, { ...stdio('own', servers.fixture), env: { PLAIN: 'typed-in-by-hand-4711' } })
	const files = readdirSync(gateway.home, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
	t.ok(files.length > 2)
	for (const file of files) {
		const bytes = readFileSync(join(file.parentPath, file.name))
		t.notOk(bytes.includes('typed-in-by-hand-4711'), file.name)
	}
})
