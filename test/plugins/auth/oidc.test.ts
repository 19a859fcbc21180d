/** Access tokens of an OpenID Connect provider, on every API: what they permit, and which are refused. */
import { createHmac } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { exportSPKI, generateKeyPair, UnsecuredJWT } from 'jose'
import t from 'tap'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import type { Credentials } from '../../../plugins/auth/contract.ts'
import { OpenRequestTable } from '../../../plugins/auth/open-requests.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Answer, Reply, TestGateway } from '../../support/gateway.ts'
import { AUDIENCE, startIssuer } from '../../support/issuer.ts'
import type { Pair } from '../../support/issuer.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { assertError } from '../../support/error-response.ts'
import { openStream } from '../../support/sse.ts'
import { eventually } from '../../support/wait.ts'
import { openRaw, openStream as openSessionStream } from '../mcp-server/client.ts'

const rules = `
      - when: {groups: operators}
        scopes: ['*']
      - when: {groups: [support, sales], active: true}
        scopes: [agents:read, runs:write, events:read]
        agents: ['team-*']
        limits: {runs_per_day: 2}
      - when: {realm.roles: auditor}
        scopes: [events:read, agents:read]
        agents: ['audit-*']
      - when: {scope: [openid reports, reports], groups: sales}
        scopes: [agents:read]
        agents: ['sales-*']
`

async function start(t: Test) {
	const issuer = await startIssuer(t)
	const gateway = await startGateway({
		config: `
auth_mode: token
auth:
  oidc:
    issuer: ${issuer.url}
    audience: ${AUDIENCE}
    client_id: console
    rules: ${rules}
plugins: {openai-api: true, mcp-server: true}
`,
	})
	t.teardown(() => gateway.stop())
	const operator = await issuer.sign({ groups: ['operators'] })
	for (const name of ['team-a', 'audit-a', 'other']) {
		const made = await gateway.request('POST', '/v1/agents', { token: operator, body: { name } })
		t.equal(made.status, 201)
	}
	const get = (token: string, path: string): Promise<Reply<Answer>> => gateway.request('GET', path, { token })
	return { issuer, gateway, operator, get }
}

function names({ body }: Reply<Answer>): string[] {
	return (body as { name: string }[]).map(({ name }) => name).toSorted()
}

void t.test('a rule grants its scopes for its agents only', async (t) => {
	const { issuer, gateway, operator, get } = await start(t)
	t.strictSame(names(await get(operator, '/v1/agents')), ['audit-a', 'other', 'team-a'])
	t.equal((await get(operator, '/v1/auth/tokens')).status, 200)
	const support = await issuer.sign({ groups: ['x', 'support'], active: true, email: 'grace@example.com' })
	t.strictSame(names(await get(support, '/v1/agents')), ['team-a'])
	t.equal((await get(support, '/v1/agents/other')).status, 404)
	assertError(t, await get(support, '/v1/auth/tokens'), { status: 403, code: 'forbidden' })
	const me = await get(support, '/v1/auth/me')
	t.match(me.body, {
		kind: 'oidc',
		id: 'grace',
		label: 'grace@example.com',
		scopes: ['agents:read', 'runs:write', 'events:read'],
		agents: ['team-*'],
		limits: { runs_per_day: 2 },
	})
	assertError(t, await get(await issuer.sign({ groups: ['support'] }), '/v1/agents'), {
		status: 403,
		code: 'forbidden',
		message: /no rule of auth\.oidc/,
	})

	const both = await issuer.sign({ groups: 'sales', active: true, realm: { roles: ['auditor'] } })
	t.strictSame(names(await get(both, '/v1/agents')), ['audit-a', 'team-a'])
	const run = (agent: string, token = both): Promise<Reply<Answer>> =>
		gateway.request('POST', `/v1/agents/${agent}/runs`, { token, body: { prompt: 'hello' } })
	t.equal((await run('team-a')).status, 200)
	assertError(t, await run('audit-a'), { status: 403, code: 'forbidden', message: /runs:write/ })
	t.equal((await run('other')).status, 404)
	const said = { model: 'svc/audit-a', messages: [{ role: 'user', content: 'hello' }] }
	t.equal((await gateway.request('POST', '/v1/chat/completions', { token: both, body: said })).status, 404)

	const { body: response } = await gateway.request('POST', '/v1/responses', {
		token: both,
		body: { model: 'svc/team-a', input: 'hello' },
	})
	const path = `/v1/responses/${response.id}`
	t.equal((await get(support, path)).status, 200)
	const auditor = await issuer.sign({ realm: { roles: ['auditor'] } })
	t.equal((await get(auditor, path)).status, 404, 'its own response, of an agent that this token does not permit')
	assertError(t, await run('team-a', support), { status: 429, code: 'rate_limited', message: /started its 2 runs/ })
	const events = await eventually(async () => {
		const { body } = await get(operator, '/v1/audit?actor=grace&event_type=run.started')
		return body.events.length === 2 && body.events
	})
	t.match(events[0].payload.actor, { kind: 'oidc', id: 'grace' })
})

void t.test('streams, WebSockets and MCP accept these tokens, and end with them', async (t) => {
	/** Removes MCP sessions that have been idle for too long, as a timer of the gateway does. */
	let forgetUnused: (() => void) | undefined
	const timeout = globalThis.setTimeout
	t.teardown(() => (globalThis.setTimeout = timeout))
	const observed = (work: (limit: unknown) => void, ms: number, ...args: unknown[]): NodeJS.Timeout => {
		if (ms === 1_800_000 && args[0] === 0) forgetUnused = () => work(0)
		return timeout(work, ms, ...(args as [unknown]))
	}
	globalThis.setTimeout = observed as typeof setTimeout
	const { issuer, gateway, operator } = await start(t)
	globalThis.setTimeout = timeout
	const support = await issuer.sign({ groups: 'support', active: true, exp: Math.floor(Date.now() / 1000) + 3600 })
	const stream = await openStream(`${gateway.url}/v1/events/stream`, { token: support })
	t.teardown(() => stream.close())
	const legacy = (gateway.running.gateway.status.url('legacy') ?? '').replace('http', 'ws')
	const open = async (agent: string): Promise<'open' | number> => {
		const socket = new WebSocket(`${legacy}/api/agents/${agent}/chat/ws`, {
			headers: { authorization: `Bearer ${support}` },
		})
		t.teardown(() => socket.terminate())
		return new Promise((resolve) => {
			socket.once('open', () => resolve('open'))
			socket.once('unexpected-response', (_request, { statusCode = 0 }) => resolve(statusCode))
			socket.once('error', () => {})
		})
	}
	t.equal(await open('team-a'), 'open')
	t.equal(await open('other'), 404)
	const client = new Client({ name: 'test', version: '1' })
	const transport = new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), {
		requestInit: { headers: { authorization: `Bearer ${support}` } },
	})
	await client.connect(transport)
	t.teardown(() => client.close())
	const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
	const narrower = await issuer.sign({ realm: { roles: ['auditor'] } })
	const inSession = { 'mcp-session-id': transport.sessionId ?? '', accept: 'application/json, text/event-stream' }
	for (const [token, status] of [
		[narrower, 404],
		[support, 200],
	] as const)
		t.equal((await gateway.request('POST', '/mcp', { token, headers: inSession, body: ping })).status, status)
	const unknown = await gateway.request('POST', '/mcp', { body: ping })
	const [, document = ''] = /resource_metadata="([^"]+)"/.exec(unknown.headers.get('www-authenticate') ?? '') ?? []
	t.strictSame(
		await (await fetch(document)).json(),
		{
			resource: `${gateway.url}/mcp`,
			authorization_servers: [issuer.url],
			scopes_supported: ['openid', 'reports'],
			bearer_methods_supported: ['header'],
		},
		'the scopes of the issuer, not those of the gateway',
	)
	const listed = await client.callTool({ name: 'list_agents', arguments: {} })
	t.match(JSON.stringify(listed), /team-a/)
	t.notMatch(JSON.stringify(listed), /audit-a|other/)
	await gateway.request('POST', '/v1/agents', { token: operator, body: { name: 'team-b' } })
	await gateway.request('POST', '/v1/agents', { token: operator, body: { name: 'other-b' } })
	await gateway.request('POST', '/v1/agents', { token: operator, body: { name: 'team-c' } })
	await eventually(() => stream.events.some(({ agent_id }) => agent_id === 'team-c'))
	t.notOk(stream.events.some(({ agent_id }) => agent_id === 'other-b'))

	const session = await openRaw(gateway, support)
	const { ended } = await openSessionStream({ url: gateway.url, id: session.id, token: support })
	await client.close()
	const real = Date.now
	t.teardown(() => (Date.now = real))
	const signed = (payload: Record<string, unknown>): Promise<string> =>
		issuer.sign({ ...payload, exp: Math.floor(Date.now() / 1000) + 3600 })
	const pinged = async (payload: Record<string, unknown>, { id } = session): Promise<number> => {
		const headers = { ...inSession, 'mcp-session-id': id }
		return (await gateway.request('POST', '/mcp', { token: await signed(payload), headers, body: ping })).status
	}
	const same = { groups: 'support', active: true }
	const token = await signed(same)
	const other = await openRaw(gateway, token)
	Date.now = () => real() + 3_610_000
	const headers = { 'mcp-session-id': other.id }
	t.equal((await gateway.request('DELETE', '/mcp', { token, headers })).status, 204)
	t.equal(await pinged(same, other), 404, 'a session that its client ended does not continue')
	Date.now = () => real() + 3_700_000
	await Promise.all([stream.closed, ended])
	t.pass('the streams end with the token')
	t.ok(forgetUnused)
	forgetUnused?.()
	t.equal(await pinged({ ...same, sub: 'eve' }), 404)
	t.equal(await pinged(same), 200, 'the session continues with the next token')
	t.equal(await pinged({ realm: { roles: ['auditor'] } }), 404, 'not with one that permits something else')
})

void t.test('open streams and sockets end when the rules no longer permit the same', async (t) => {
	const { issuer, gateway } = await start(t)
	const support = await issuer.sign({ groups: 'support', active: true })
	const operator = await issuer.sign({ groups: 'operators' })
	const open = async (token: string) => {
		const stream = await openStream(`${gateway.url}/v1/events/stream`, { token })
		t.teardown(() => stream.close())
		return stream
	}
	const [supportStream, operatorStream] = [await open(support), await open(operator)]
	const legacy = (gateway.running.gateway.status.url('legacy') ?? '').replace('http', 'ws')
	const headers = { authorization: `Bearer ${support}` }
	const socket = new WebSocket(`${legacy}/api/agents/team-a/chat/ws`, { headers })
	await once(socket, 'open')
	const socketClosed = once(socket, 'close')

	const file = join(gateway.home, 'config/gateway.yaml')
	writeFileSync(file, readFileSync(file, 'utf8').replace('[agents:read, runs:write, events:read]', '[agents:read]'))
	await gateway.running.gateway.reload()
	await Promise.all([supportStream.closed, socketClosed])
	assertError(t, await gateway.request('GET', '/v1/events/stream', { token: support }), {
		status: 403,
		code: 'forbidden',
	})
	await gateway.request('POST', '/v1/agents', { token: operator, body: { name: 'team-d' } })
	t.ok(await operatorStream.waitFor((event) => event.agent_id === 'team-d'), "another caller's stream continues")
})

void t.test('of one token, only streams opened under former rules end', async (t) => {
	const former = [{ when: { groups: 'support' }, scopes: ['*'] }]
	const current = [{ when: { groups: 'support' }, scopes: ['events:read'] }]
	const claims = { iss: 'https://login.example.com', sub: 'grace', exp: 4_000_000_000 }
	const table = new OpenRequestTable({ what: 'streams are open' }, async ({ rules }) => rules === current)
	const open = (rules: NonNullable<Credentials['rules']>) => {
		const actor = { kind: 'oidc' as const, id: 'grace' }
		const credentials: Credentials = { token_id: 'oidc:grace', scope: [], local: false, actor, claims, rules }
		const ended = Promise.withResolvers<void>()
		const one = { credentials, end: () => void (table.leave(one) && ended.resolve()) }
		table.enter(one)
		return { one, ended: ended.promise }
	}
	// A request that was accepted before the change may be entered after it.
	const before = open(former)
	const stays = open(current)
	const late = open(former)
	await Promise.all([before.ended, late.ended])
	t.strictSame([...table], [stays.one])
	table.leave(stays.one)
})

void t.test('each invalid token is refused', async (t) => {
	const { issuer, get, gateway, operator } = await start(t)
	const other = await startIssuer(t)
	const now = Math.floor(Date.now() / 1000)
	const claims = { groups: 'operators' }
	const [key] = issuer.keys.values()
	const pem = await exportSPKI((key as Pair).publicKey)
	const encoded = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')
	const forged = `${encoded({ alg: 'HS256', typ: 'at+jwt', kid: 'one' })}.${encoded({ iss: issuer.url, aud: AUDIENCE, sub: 'eve', exp: now + 60, ...claims })}`
	const hmac = `${forged}.${createHmac('sha256', pem).update(forged).digest('base64url')}`
	const none = new UnsecuredJWT({ iss: issuer.url, aud: AUDIENCE, sub: 'eve', exp: now + 60, ...claims }).encode()
	const good = await issuer.sign(claims)
	const [head = '', body = '', signature = ''] = good.split('.')
	const wrong: Record<string, string> = {
		'another issuer': await other.sign(claims),
		'another issuer in its name': await other.sign({ ...claims, iss: issuer.url }),
		'another audience': await issuer.sign({ ...claims, aud: 'https://elsewhere.example.com' }),
		'alg none': none,
		'HMAC with the public key': hmac,
		expired: await issuer.sign({ ...claims, exp: now - 120 }),
		'not yet valid': await issuer.sign({ ...claims, nbf: now + 120 }),
		'without an end': await issuer.sign({ ...claims, exp: undefined }),
		'without a subject': await issuer.sign({ ...claims, sub: undefined }),
		'an unknown key': await issuer.sign(claims, { kid: 'two' }),
		'an ID token with a nonce': await issuer.sign({ ...claims, nonce: 'x' }, { typ: 'JWT' }),
		'an ID token for the client': await issuer.sign({ ...claims, aud: 'console' }, { typ: 'JWT' }),
		'changed claims': `${head}.${encoded({ ...JSON.parse(Buffer.from(body, 'base64url').toString()), sub: 'eve' })}.${signature}`,
		'no signature': `${head}.${body}.`,
	}
	for (const [what, token] of Object.entries(wrong)) {
		const reply = await get(token, '/v1/agents')
		t.ok([401, 429].includes(reply.status), `${what}: ${reply.status}`)
		t.notMatch(JSON.stringify(reply.body), token)
	}
	t.equal((await get(good, '/v1/agents')).status, 200, 'a valid token is still accepted')
	// Refusals do not wait for their events.
	const { events } = await eventually(
		async () => (await get(operator, '/v1/audit?event_type=security.violation')).body,
		(page) => page.events.length >= Object.keys(wrong).length,
	)
	for (const token of Object.values(wrong)) t.notMatch(JSON.stringify(events), token)
	t.equal(gateway.running.gateway.status.storeTrouble(), null)
})

void t.test('after a rotation only the new key is accepted, and keys are not read for each token', async (t) => {
	const { issuer, get } = await start(t)
	const old = await issuer.sign({ groups: 'operators' })
	t.equal((await get(old, '/v1/agents')).status, 200)
	t.equal(issuer.state.reads, 1)
	issuer.keys.set('two', await generateKeyPair('ES256', { extractable: true }))
	issuer.keys.delete('one')
	const real = Date.now
	t.teardown(() => (Date.now = real))
	Date.now = () => real() + 60_000
	t.equal((await get(await issuer.sign({ groups: 'operators' }, { kid: 'two' }), '/v1/agents')).status, 200)
	t.equal((await get(old, '/v1/agents')).status, 401)
	t.ok(issuer.state.reads <= 3)
})

void t.test('requests of anonymous callers to the issuer are limited', async (t) => {
	let exchanges = 0
	const issuer = createServer((request, response) => {
		if (request.url === '/token') return void exchanges++
		response.setHeader('content-type', 'application/json')
		response.end(
			JSON.stringify({ issuer: url, authorization_endpoint: `${url}/begin`, token_endpoint: `${url}/token` }),
		)
	})
	const { url, stop } = await listenOnLoopback(issuer)
	const gateway = await startGateway({
		config: `auth: {oidc: {issuer: '${url}', client_id: console, rules: [{when: {a: b}, scopes: ['*']}]}}\n`,
	})
	t.teardown(() => gateway.stop())
	const { body, headers } = await gateway.request('POST', '/v1/auth/login')
	const state = new URL(body.url).searchParams.get('state')
	const cookie = headers.get('set-cookie')?.split(';')[0] ?? ''
	let refused = 0
	const answers = Array.from({ length: 40 }, async () => {
		const path = `/v1/auth/callback?code=made-up&state=${state}`
		const { status, body: page } = await gateway.request('GET', path, { headers: { cookie } })
		if (status === 503 && /at the same time/.test(page)) refused++
	})
	await eventually(() => exchanges + refused === answers.length)
	t.strictSame({ exchanges, refused }, { exchanges: 32, refused: 8 })
	await stop()
	await Promise.all(answers)
})

void t.test('while the issuer is unreachable, its tokens get 503, and other callers are served', async (t) => {
	const issuer = await startIssuer(t)
	issuer.state.isDown = true
	const gateway: TestGateway = await startGateway({
		config: `auth: {oidc: {issuer: '${issuer.url}', rules: [{when: {groups: operators}, scopes: ['*']}]}}\n`,
	})
	t.teardown(() => gateway.stop())
	const token = await issuer.sign({ groups: 'operators', aud: gateway.url })
	const reply = await gateway.request('GET', '/v1/agents', { token })
	assertError(t, reply, { status: 503, code: 'unavailable', message: /auth\.oidc\.issuer/ })
	t.ok(reply.headers.get('retry-after'))
	t.equal((await gateway.request('GET', '/v1/agents')).status, 200)
	issuer.state.isDown = false
	t.equal(
		(await gateway.request('GET', '/v1/agents', { token })).status,
		200,
		"the default audience is the gateway's address",
	)
})

void t.test('a scope that no plugin declares is refused at the start', async (t) => {
	const config =
		"auth: {oidc: {issuer: 'https://login.example.com', rules: [{when: {a: b}, scopes: ['agents:raed']}]}}\n"
	await t.rejects(startGateway({ config }), { message: /agents:raed/ })
})

void t.test('a change to token mode is accepted if a rule permits administration', async (t) => {
	const rule = (more: string): string =>
		`auth: {oidc: {issuer: 'https://login.example.com', rules: [{when: {a: b}, scopes: ['*']${more}}]}}\n`
	const gateway = await startGateway({ config: rule('') })
	t.teardown(() => gateway.stop())
	const change = async (text: string): Promise<void> => {
		writeFileSync(join(gateway.home, 'config/gateway.yaml'), text)
		await gateway.running.gateway.reload()
	}
	await t.rejects(change(`auth_mode: token\n${rule(', agents: [ada]')}`), { code: 'config_invalid' })
	await change(`auth_mode: token\n${rule('')}`)
	t.equal((await gateway.request('GET', '/v1/agents')).status, 401)
})
