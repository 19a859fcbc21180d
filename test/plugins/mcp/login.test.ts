/** Logins to MCP servers by OAuth, with a certified authorization server. */
import { generateKeyPairSync } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { addToken } from '../../support/add.ts'
import { endedRun } from '../../support/ended-run.ts'
import { makeHome, send, startGateway } from '../../support/gateway.ts'
import type { Answer, TestGateway } from '../../support/gateway.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { add, callTool, until } from '../../support/mcp.ts'
import { browse, startProtectedServer } from '../../support/oauth.ts'
import type { ProtectedServer } from '../../support/oauth.ts'
import { svcFor } from '../../support/cli.ts'
import { spawnGateway } from '../../support/process.ts'
import { assertError } from '../../support/error-response.ts'
import { follow } from '../../support/runs.ts'
import type { Followed } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())

const callback = (at: Pick<TestGateway, 'url'> = gateway): string => `${at.url}/v1/mcp/callback`

let agents = 0
async function newAgent(t: Test, at: TestGateway = gateway): Promise<Followed & { name: string }> {
	const name = `ada${++agents}`
	return { ...(await follow(t, at, name)), name }
}

/** A protected server that a new agent has, without a login. */
async function guarded(t: Test): Promise<{ server: ProtectedServer; agent: Followed & { name: string }; id: string }> {
	const server = await startProtectedServer(t)
	const agent = await newAgent(t)
	const { id } = await add(agent, { name: 'guarded', transport: 'http', url: server.url })
	return { server, agent, id }
}

async function begin(agent: Followed, id: string): Promise<string> {
	const { status, body } = await agent.call(`mcp/${id}/login`, {})
	if (status !== 200) throw new Error(JSON.stringify(body))
	return body.url
}

/** Signs in with a new browser, and returns the final page. */
async function signIn(agent: Followed, id: string, at: Pick<TestGateway, 'url'> = gateway): Promise<Response> {
	return fetch(await browse(await begin(agent, id), callback(at)))
}

async function signedIn(
	t: Test,
	server: ProtectedServer,
	fields: object = {},
): Promise<[Followed & { name: string }, Answer]> {
	const agent = await newAgent(t)
	const added = await add(agent, { name: 'guarded', transport: 'http', url: server.url, ...fields })
	t.equal(added.status, 'needs_login')
	t.equal((await signIn(agent, added.id)).status, 200)
	return [agent, await until(gateway, agent.name, added.id, ({ status }) => status === 'connected')]
}

void t.test('a person signs in, and the agent uses the tools', async (t) => {
	const server = await startProtectedServer(t)
	const agent = await newAgent(t)
	const { id, status, status_detail } = await add(agent, { name: 'guarded', transport: 'http', url: server.url })
	t.equal(status, 'needs_login')
	t.match(status_detail, /svc mcp login ada\d guarded/)
	t.match((await agent.call(`mcp/${id}`)).body, { status: 'needs_login', login: null })

	const page = await signIn(agent, id)
	t.equal(page.status, 200)
	t.match(page.headers.get('content-security-policy'), /default-src 'none'/)
	t.match(await page.text(), /can use the MCP server "guarded" now/)
	const details = await until(gateway, agent.name, id, (one) => one.status === 'connected')
	t.match(details.login, { issuer: server.issuer, scopes: ['mcp:use'], renewable: true })
	t.match(await callTool(agent, 'mcp__guarded__echo', { text: 'tea' }), { event_type: 'mcp.result', result: 'tea' })

	const types = (await gateway.request('GET', `/v1/audit?agent_id=${agent.name}`)).body.events.map(
		(one: Answer) => one.event_type,
	)
	for (const type of ['mcp.login_required', 'mcp.logged_in']) t.ok(types.includes(type), type)

	t.equal((await agent.call(`mcp/${id}/logout`, {})).body.status, 'needs_login')
	const { token } = server.arrived.findLast((one) => one.status === 200) ?? { token: '' }
	t.equal(await server.provider.AccessToken.find(token), undefined, 'it was revoked')
	t.match((await agent.call(`mcp/${id}`)).body, { login: null })
})

void t.test('svc adds a server, signs in with a browser, and signs out', async (t) => {
	const server = await startProtectedServer(t)
	const svc = svcFor(gateway)
	const agent = await newAgent(t)
	const { name } = agent
	t.match(await svc(['mcp', 'add', name, 'guarded', '--url', server.url, '--scope', 'mcp:use']), {
		code: 0,
		stdout: /needs_login/,
		stderr: new RegExp(`svc mcp login ${name} guarded`),
	})
	const addressIn = (text: string): string | undefined => /^ *(http\S+\/auth\?\S+)$/m.exec(text)?.[1]
	let isOpened = false
	const login = await svc(['mcp', 'login', name, 'guarded', '--json'], {
		onOutput(text) {
			const url = addressIn(text)
			if (url === undefined || isOpened) return
			isOpened = true
			void browse(url, callback()).then((back) => fetch(back))
		},
	})
	t.match(login.json(), { status: 'connected', login: { scopes: ['mcp:use'] } })
	t.match((await svc(['mcp', 'show', name, 'guarded'])).stdout, /signed in: .*mcp:use/)
	const logout = await svc(['mcp', 'logout', name, 'guarded', '--json'])
	t.equal(logout.code, 0)
	t.match(logout.json(), { status: 'needs_login' })
	t.match((await svc(['doctor', '--only', 'mcp.connection'])).stdout, /svc mcp login/)
})

void t.test('until somebody has signed in, the model gets the reason', async (t) => {
	const server = await startProtectedServer(t)
	const [agent, { id }] = await signedIn(t, server)
	await agent.call(`mcp/${id}/logout`, {})
	t.match(await callTool(agent, 'mcp__guarded__echo'), {
		event_type: 'mcp.failed',
		code: 'mcp_unavailable',
		message: /an operator must sign in \(svc mcp login/,
	})
})

void t.test('a login completes even if the plugin is reloaded meanwhile', async (t) => {
	const { server, agent, id } = await guarded(t)
	// The instance that got the callback still waits for the tokens when the next one connects.
	server.beforeTokens = async () => {
		server.beforeTokens = undefined
		t.equal((await gateway.request('POST', '/v1/plugins/mcp/reload')).status, 200)
		await until(gateway, agent.name, id, ({ status }) => status === 'needs_login')
	}
	t.equal((await signIn(agent, id)).status, 200)
	await until(gateway, agent.name, id, ({ status }) => status === 'connected')
})

void t.test('with auth.wait a run waits for the login, and then continues', async (t) => {
	const server = await startProtectedServer(t)
	const [agent, { id }] = await signedIn(t, server, { auth: { type: 'oauth', wait: true } })
	await agent.call(`mcp/${id}/logout`, {})
	const run_id = await agent.start('/tool mcp__guarded__echo {"text": "late"}')
	await agent.waitFor(run_id, 'run.paused')
	t.match((await agent.read(run_id)).question, { kind: 'login', question: /needs a login/ })
	t.equal((await signIn(agent, id)).status, 200)
	t.equal((await agent.ended(run_id)).event_type, 'run.completed')
	t.match((await agent.waitFor(run_id, 'question.answered')).payload, { answer: /Signed in; call the tool again/ })
})

void t.test('an expired token is renewed once for 50 runs that need it at the same time', async (t) => {
	const ttl_s = 2
	const server = await startProtectedServer(t, { ttl_s })
	const [agent] = await signedIn(t, server)
	const before = server.grants.length
	const names = Array.from({ length: 50 }, (_, at) => `c${at}`)
	const call = async (conversation: string): Promise<void> => {
		const body = { prompt: `/tool mcp__guarded__echo {"text": "${conversation}"}`, conversation }
		const { run_id } = (await gateway.request('POST', `/v1/agents/${agent.name}/runs`, { body })).body
		const { status, answer } = await endedRun(gateway.url, run_id)
		t.match({ status, answer }, { status: 'completed', answer: new RegExp(conversation) })
	}
	for (let round = 0; round < 3; round++) {
		await Promise.all(names.map(call))
		const { token } = server.arrived.findLast((one) => one.status === 200) ?? {}
		const { at = NaN } = server.arrived.find((one) => one.token === token) ?? {}
		// For the gateway, it expires that long after it was received.
		await eventually(() => Date.now() > at + ttl_s * 1000)
	}
	const refreshes = server.grants.slice(before)
	t.ok(refreshes.length >= 2, `${refreshes.length} renewals`)
	t.ok(refreshes.every((grant) => grant === 'refresh_token'))
	t.equal(server.mostAtOnce, 1, 'one at a time')
})

void t.test('a gateway that is killed during a token rotation needs a new login', async (t) => {
	const server = await startProtectedServer(t, { ttl_s: 1 })
	const home = makeHome({}, t)
	const at = (url: string): Pick<TestGateway, 'url' | 'request'> => ({
		url,
		request: (method, path, options) => send(url + path, method, options),
	})
	const first = await spawnGateway(home)
	t.teardown(() => first.kill())
	const agent = await follow(t, at(first.url), 'ada')
	const { id } = await add(agent, { name: 'guarded', transport: 'http', url: server.url })
	await signIn(agent, id, first)
	await until(at(first.url), 'ada', id, ({ status }) => status === 'connected')
	// The server issues new tokens that the gateway never gets.
	const killed = Promise.withResolvers<void>()
	server.beforeTokens = async () => {
		server.beforeTokens = undefined
		await first.kill()
		killed.resolve()
	}
	await eventually(() => server.arrived.length > 0)
	void agent.start('/tool mcp__guarded__echo {}').catch(() => {})
	// Calls renew the token only once it has expired.
	const calls = setInterval(() => void agent.start('/tool mcp__guarded__echo {}').catch(() => {}), 200)
	t.teardown(() => clearInterval(calls))
	await killed.promise
	clearInterval(calls)
	const grants = server.grants.length
	const second = await startGateway({ home })
	t.teardown(() => second.stop())
	const now = await until(at(second.url), 'ada', id, ({ status }) => status !== 'connecting')
	t.equal(now.status, 'needs_login')
	t.ok(server.grants.length <= grants, 'the former refresh token gets no token')
})

void t.test("an operator's client signs in with a secret, with a key, or for the agent itself", async (t) => {
	const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
	const jwk = { ...pair.publicKey.export({ format: 'jwk' }), kid: 'gateway', use: 'sig', alg: 'ES256' }
	const common = { redirect_uris: [callback()], grant_types: ['authorization_code', 'refresh_token'] }
	const own = { redirect_uris: [], response_types: [], grant_types: ['client_credentials'] }
	const server = await startProtectedServer(t, {
		configuration: {
			clients: [
				{ client_id: 'by-secret', client_secret: 'very-secret-text', ...common },
				{ client_id: 'by-key', token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [jwk] }, ...common },
				{ client_id: 'own', client_secret: 'own-secret-text', ...own },
			] as never,
		},
	})
	const key = String(pair.privateKey.export({ format: 'pem', type: 'pkcs8' }))
	const secrets = { BY_SECRET: 'very-secret-text', BY_KEY: key, OWN: 'own-secret-text' }
	for (const [name, value] of Object.entries(secrets))
		await gateway.request('POST', '/v1/vault/secrets', { body: { name, value } })
	const grant = (agent: string, secret: string) =>
		gateway.request('POST', '/v1/vault/grants', { body: { agent_id: agent, secret_id: secret } })

	for (const [client_id, field, secret] of [
		['by-secret', 'client_secret', 'BY_SECRET'],
		['by-key', 'private_key', 'BY_KEY'],
	] as const) {
		const agent = await newAgent(t)
		const { grant_id } = (await grant(agent.name, secret)).body
		const auth = { type: 'oauth', client_id, [field]: { secret } }
		const { id, status } = await add(agent, { name: 'guarded', transport: 'http', url: server.url, auth })
		t.equal(status, 'needs_login', client_id)
		t.equal((await signIn(agent, id)).status, 200, client_id)
		await until(gateway, agent.name, id, (one) => one.status === 'connected')
		t.match((await agent.call(`mcp/${id}`)).body, { auth })
		await gateway.request('DELETE', `/v1/vault/grants/${grant_id}`)
		t.equal((await agent.call(`mcp/${id}/logout`, {})).status, 200, 'even if the tokens can no longer be revoked')
		t.match((await agent.call(`mcp/${id}`)).body, { login: null })
	}

	const agent = await newAgent(t)
	await grant(agent.name, 'OWN')
	const auth = { type: 'oauth', grant: 'client_credentials', client_id: 'own', client_secret: { secret: 'OWN' } }
	const { id, status } = await add(agent, { name: 'guarded', transport: 'http', url: server.url, auth })
	t.equal(status, 'connected', 'without a person')
	t.match(await callTool(agent, 'mcp__guarded__echo', { text: 'own' }), { result: 'own' })
	assertError(t, await agent.call(`mcp/${id}/login`, {}), {
		status: 409,
		code: 'conflict',
		message: /signs in automatically/,
	})
})

void t.test('if a tool needs further scopes, the next login requests them as well', async (t) => {
	const server = await startProtectedServer(t, { scopes: ['mcp:use', 'mcp:call'], scopeOfCalls: 'mcp:call' })
	const [agent, { id }] = await signedIn(t, server, { auth: { type: 'oauth', scopes: ['mcp:use'] } })
	t.match(await callTool(agent, 'mcp__guarded__echo'), {
		event_type: 'mcp.failed',
		message: /wants further permissions \(mcp:call\)/,
	})
	t.match((await agent.call(`mcp/${id}`)).body, { status: 'connected', status_detail: /further permissions/ })
	const url = new URL(await begin(agent, id))
	t.match(url.searchParams.get('scope'), /^mcp:use mcp:call\b/)
	t.equal((await signIn(agent, id)).status, 200)
	await until(gateway, agent.name, id, ({ status }) => status === 'connected')
	t.match(await callTool(agent, 'mcp__guarded__echo', { text: 'more' }), { result: 'more' })
})

/** A server with these documents, by path; a function answers by itself. Returns its address. */
async function startDocuments(t: Test, documents: (base: string) => Record<string, unknown>): Promise<string> {
	const server = createServer((request, response) => {
		const found = documents(base)[request.url ?? '']
		if (typeof found === 'function') return (found as (response: unknown) => void)(response)
		if (found === undefined) return void response.writeHead(request.url === '/mcp' ? 401 : 404).end()
		response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(found))
	})
	const { url: base, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	return base
}

/** The metadata of an authorization server. */
const authorization = (issuer: string, change: object = {}): object => ({
	issuer,
	authorization_endpoint: `${issuer}/authorize`,
	token_endpoint: `${issuer}/token`,
	registration_endpoint: `${issuer}/register`,
	response_types_supported: ['code'],
	code_challenge_methods_supported: ['S256'],
	...change,
})
const AT_RESOURCE = '/.well-known/oauth-protected-resource/mcp'
const AT_ISSUER = '/.well-known/oauth-authorization-server'

void t.test('a forged, used or replaced login is refused and reported', async (t) => {
	const { agent, id } = await guarded(t)
	const replaced = await browse(await begin(agent, id), callback())
	const good = await browse(await begin(agent, id), callback())
	t.equal((await fetch(replaced)).status, 400, 'replaced by another login')
	const forged = new URL(good)
	forged.searchParams.set('state', `${id}.${'A'.repeat(43)}`)
	t.equal((await fetch(`${callback()}?code=x&state=none`)).status, 400)
	t.equal((await fetch(forged)).status, 400)
	t.equal((await fetch(`${callback()}?error=access_denied&state=${id}`)).status, 400)
	t.equal((await fetch(good)).status, 200, 'forged callbacks do not end the login')
	t.equal((await fetch(good)).status, 400, 'it can be used once')
	const reported = async (): Promise<number> => {
		const path = `/v1/audit?agent_id=${agent.name}&event_type=security.violation&limit=500`
		const { events } = (await gateway.request('GET', path)).body
		return events.filter(({ payload }: Answer) => payload.reason === 'mcp_login_refused').length
	}
	await eventually(reported, (count) => count === 4)
	for (let n = 0; n < 20; n++) await fetch(forged)
	await eventually(reported, (count) => count === 10)
})

void t.test('an injected code, an answer of another server, or an error of the server ends the login', async (t) => {
	const { agent, id } = await guarded(t)
	// The code of a login with another verifier.
	const victim = new URL(await browse(await begin(agent, id), callback()))
	const own = new URL(await browse(await begin(agent, id), callback()))
	own.searchParams.set('code', victim.searchParams.get('code') ?? '')
	const injected = await fetch(own)
	t.equal(injected.status, 502)
	t.notMatch(await injected.text(), victim.searchParams.get('code') ?? 'none')

	const mixed = new URL(await browse(await begin(agent, id), callback()))
	mixed.searchParams.set('iss', 'https://other.example.com')
	t.equal((await fetch(mixed)).status, 403)
	const bare = new URL(await browse(await begin(agent, id), callback()))
	bare.searchParams.delete('iss')
	t.equal((await fetch(bare)).status, 403, 'its metadata promises iss')

	const failed = new URL(await browse(await begin(agent, id), callback()))
	failed.searchParams.delete('code')
	failed.searchParams.set('error', 'access_denied')
	failed.searchParams.set('error_description', '<script>alert(1)</script>')
	const page = await fetch(failed)
	t.equal(page.status, 502)
	const text = await page.text()
	t.match(text, /access_denied/)
	t.notMatch(text, /<script>/)
	t.equal((await agent.call(`mcp/${id}`)).body.status, 'needs_login')
})

void t.test('the callback does not redirect, and only the URL of its own login completes a login', async (t) => {
	const { server, agent, id } = await guarded(t)
	const other = await add(agent, { name: 'other', transport: 'http', url: server.url })
	const answer = await fetch(`${callback()}?redirect_uri=https://example.com&next=https://example.com`, {
		redirect: 'manual',
	})
	t.equal(answer.headers.get('location'), null)
	const redirect_url = await browse(await begin(agent, id), callback())
	assertError(t, await agent.call(`mcp/${other.id}/login/complete`, { redirect_url }), {
		status: 400,
		code: 'invalid_request',
		message: /does not exist/,
	})
	t.equal((await agent.call(`mcp/${id}/login/complete`, { redirect_url })).body.status, 'connected')
	// The authorization server accepts our redirect address only.
	const url = new URL(await begin(agent, other.id))
	url.searchParams.set('redirect_uri', 'https://example.com/callback')
	await t.rejects(browse(url.href, 'https://example.com/'), /redirect_uri/)
})

void t.test('a login that the console started completes in that browser only', async (t) => {
	const { agent, id } = await guarded(t)
	const startInConsole = async () => {
		const headers = { 'sec-fetch-site': 'same-origin', origin: gateway.url, 'content-type': 'application/json' }
		const response = await fetch(`${gateway.url}/v1/agents/${agent.name}/mcp/${id}/login`, { method: 'POST', headers })
		const [cookie = ''] = response.headers.getSetCookie()
		return { url: ((await response.json()) as Answer).url as string, cookie }
	}
	const first = await startInConsole()
	t.match(first.cookie, /HttpOnly; SameSite=Lax/)
	t.equal((await fetch(await browse(first.url, callback()))).status, 403, 'another browser')
	const { url, cookie } = await startInConsole()
	const back = await browse(url, callback())
	t.equal((await fetch(back, { headers: { cookie: cookie.split(';')[0] ?? '' } })).status, 200)
})

void t.test('untrustworthy documents are refused with the reason', async (t) => {
	const elsewhere = await startDocuments(t, () => ({ [AT_ISSUER]: authorization('https://issuer.example.com') }))
	const about = (base: string, change: object = {}): object => ({
		resource: `${base}/mcp`,
		authorization_servers: [base],
		...change,
	})
	for (const [what, documents, message] of [
		[
			'another resource',
			(base: string) => ({ [AT_RESOURCE]: about(base, { resource: 'https://bank.example.com/mcp' }) }),
			/describes another resource, https:\/\/bank/,
		],
		[
			'another issuer',
			(base: string) => ({ [AT_RESOURCE]: about(base, { authorization_servers: [elsewhere] }) }),
			/describes itself as another authorization server/,
		],
		[
			'no PKCE',
			(base: string) => ({
				[AT_RESOURCE]: about(base),
				[AT_ISSUER]: authorization(base, { code_challenge_methods_supported: ['plain'] }),
			}),
			/does not support PKCE with S256/,
		],
		[
			'10 MiB',
			(base: string) => ({
				[AT_RESOURCE]: about(base),
				[AT_ISSUER]: authorization(base, { service_documentation: 'x'.repeat(10 * 2 ** 20) }),
			}),
			/larger than 65536 bytes/,
		],
	] as const) {
		const base = await startDocuments(t, documents as (base: string) => Record<string, unknown>)
		const agent = await newAgent(t)
		const { id, status } = await add(agent, { name: 'odd', transport: 'http', url: `${base}/mcp` })
		t.equal(status, 'error', what)
		t.match((await agent.call(`mcp/${id}`)).body.last_error.message, message, what)
		t.ok((await agent.call(`mcp/${id}/login`, {})).status >= 400, what)
	}
})

void t.test('documents cannot lead to a private address that the caller cannot use', async (t) => {
	const hidden = await startDocuments(t, () => ({}))
	let requests = 0
	const inner = await startDocuments(t, (base) => ({
		[AT_ISSUER]: () => {
			requests++
			return authorization(base)
		},
	}))
	const base = await startDocuments(t, (own) => ({
		[AT_RESOURCE]: { resource: `${own}/mcp`, authorization_servers: [inner] },
	}))
	const moved = await startDocuments(t, (own) => ({
		[AT_RESOURCE]: (response: ServerResponse) => response.writeHead(302, { location: `${hidden}/secret` }).end(),
		[AT_ISSUER]: authorization(own),
	}))
	// An operator has listed these two servers only, and the caller is not an operator.
	const hosts = [base, moved].map((one) => new URL(one).host)
	const own = await startGateway({ config: `auth_mode: token\nmcp: {allowed_hosts: ${JSON.stringify(hosts)}}\n` })
	t.teardown(() => own.stop())
	const operator = (await addToken(own, ['*'])).token
	await own.request('POST', '/v1/agents', { token: operator, body: { name: 'eve' } })
	const { token } = (
		await own.request('POST', '/v1/auth/tokens', { token: operator, body: { scopes: ['agents:read', 'agents:write'] } })
	).body
	const { body } = await own.request('POST', '/v1/agents/eve/mcp', {
		token,
		body: { name: 'a', transport: 'http', url: `${base}/mcp` },
	})
	const details = await eventually(
		async () => (await own.request('GET', `/v1/agents/eve/mcp/${body.id}`, { token })).body,
		(one) => one.status === 'error',
	)
	t.match(details.last_error.message, /is not a public address/)
	t.equal(requests, 0)
	const other = await own.request('POST', '/v1/agents/eve/mcp', {
		token,
		body: { name: 'b', transport: 'http', url: `${moved}/mcp` },
	})
	t.ok(['needs_login', 'error'].includes(other.body.status), 'a redirect to another origin is not followed')
})

void t.test('no token appears in events, records, answers or results of tools', async (t) => {
	const server = await startProtectedServer(t, { ttl_s: 1 })
	const [agent, { id }] = await signedIn(t, server)
	await callTool(agent, 'mcp__guarded__echo', { text: 'x' })
	await eventually(async () => {
		await callTool(agent, 'mcp__guarded__echo', { text: 'x' })
		return server.grants.filter((one) => one === 'refresh_token').length >= 2
	})
	const tokens = [...new Set(server.arrived.map((one) => one.token).filter((one) => one !== ''))]
	// The server repeats this token in its result, which is redacted.
	const last = tokens.at(-1) ?? ''
	const shown = [
		JSON.stringify((await gateway.request('GET', `/v1/audit?agent_id=${agent.name}&limit=1000`)).body),
		JSON.stringify((await agent.call(`mcp/${id}`)).body),
		JSON.stringify(await callTool(agent, 'mcp__guarded__echo', { text: `it is ${last}` })),
	].join('\n')
	t.ok(tokens.length >= 3)
	for (const token of tokens) t.notOk(shown.includes(token), 'no token')
	// The last one is in the prompt above, so it is stored.
	const data = readdirSync(join(gateway.home, 'data')).map((name) =>
		readFileSync(join(gateway.home, 'data', name), 'latin1'),
	)
	for (const token of tokens.slice(0, -1))
		t.notOk(
			data.some((text) => text.includes(token)),
			'no token in the database',
		)
})
