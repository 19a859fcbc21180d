/** Modes, scopes and failed attempts; test/plugins/auth/local.test.ts tests which callers are local. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { addToken } from '../support/add.ts'
import { gatewayFor } from '../support/gateway.ts'
import type { Reply, Answer, TestGateway } from '../support/gateway.ts'
import { isOnCluster } from '../support/nats.ts'
import { operationsOf } from '../support/openapi.ts'
import type { Described } from '../support/openapi.ts'
import { spawnGateway } from '../support/process.ts'
import { assertError } from '../support/error-response.ts'
import { testFolder } from '../support/folder.ts'
import { openStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'

const tokenMode = { env: { SVC_LOOPBACK: '0' } }
const scopes = ['agents:read', 'agents:write', 'runs:write', 'vault:read', 'vault:write', 'tokens:admin', 'events:read']
const unknownToken = `svc_${'x'.repeat(43)}`

void t.test('in loopback mode', async (t) => {
	const gateway = await gatewayFor(t)
	const { token } = await addToken(gateway, ['agents:read'])

	await t.test('a local caller needs no token and has every scope', async (t) => {
		t.equal((await gateway.request('GET', '/v1/agents')).status, 200)
		t.equal((await gateway.request('GET', '/v1/auth/tokens')).status, 200)
		t.equal((await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })).status, 201)
	})
	await t.test('a token of a local caller is validated, and its scopes apply', async (t) => {
		t.equal((await gateway.request('GET', '/v1/agents', { token })).status, 200)
		assertError(t, await gateway.request('POST', '/v1/agents', { token, body: { name: 'bob' } }), {
			status: 403,
			code: 'forbidden',
		})
		assertError(t, await gateway.request('GET', '/v1/agents', { token: unknownToken }), {
			status: 401,
			code: 'unauthorized',
		})
	})
	await t.test('a caller that is not local needs a token, and nothing else', async (t) => {
		const headers = { 'x-forwarded-for': '192.0.2.7' }
		const reply = await gateway.request('GET', '/v1/agents', { headers })
		assertError(t, reply, { status: 401, code: 'unauthorized', message: /send a token.*proxy/ })
		t.equal(reply.headers.get('www-authenticate'), 'Bearer')
		t.equal((await gateway.request('GET', '/v1/agents', { headers, token })).status, 200)
	})
})

void t.test('in token mode', async (t) => {
	const gateway = await gatewayFor(t, tokenMode)
	const admin = (await addToken(gateway, ['*'])).token

	await t.test('every request needs a token', async (t) => {
		const reply = await gateway.request('GET', '/v1/agents')
		assertError(t, reply, { status: 401, code: 'unauthorized', message: /auth_mode is token/ })
		t.equal(reply.headers.get('www-authenticate'), 'Bearer')
		t.equal((await gateway.request('GET', '/v1/agents', { token: admin })).status, 200)
	})
	await t.test('the scheme is case-insensitive', async (t) => {
		const headers = { authorization: `bEARER   ${admin}` }
		t.equal((await gateway.request('GET', '/v1/agents', { headers })).status, 200)
	})
	await t.test('any other authorization header is refused as an invalid token', async (t) => {
		const invalid = [
			'Bearer',
			`Basic ${admin}`,
			admin,
			`Bearer ${admin} x`,
			`Bearer ${admin.slice(0, -1)}`,
			`Bearer ${admin}A`,
		]
		for (const authorization of invalid) {
			const reply = await gateway.request('GET', '/v1/agents', { headers: { authorization } })
			assertError(t, reply, { status: 401, code: 'unauthorized' })
			t.equal(reply.headers.get('www-authenticate'), 'Bearer error="invalid_token"')
		}
	})
	await t.test('health checks and the OpenAPI document need no token', async (t) => {
		for (const path of ['/healthz', '/readyz', '/v1/health', '/v1/openapi.json']) {
			t.equal((await gateway.request('GET', path)).status, 200, path)
		}
	})
	await t.test('the token is checked before the body is parsed', async (t) => {
		const reply = await gateway.request('POST', '/v1/agents', { body: '{"name":' })
		assertError(t, reply, { status: 401, code: 'unauthorized' })
	})
})

void t.test('each operation accepts its own scope and *, and no other', async (t) => {
	const gateway = await gatewayFor(t, tokenMode)
	const by = (await addToken(gateway, ['*'])).token
	const { body: document } = await gateway.request<Described>('GET', '/v1/openapi.json')
	const guarded = operationsOf(document)
		.filter(({ server }) => server === undefined)
		.flatMap(({ path, method, operation }) => {
			const scope = operation['x-scope']
			return typeof scope === 'string' ? [{ path, method, scope }] : []
		})
	t.ok(guarded.length >= 18)
	const tokens = new Map<string, { only: string; others: string }>()
	for (const scope of new Set(guarded.map((one) => one.scope))) {
		const rest = scopes.filter((one) => one !== scope)
		const [only, others] = [await addToken(gateway, [scope], { by }), await addToken(gateway, rest, { by })]
		tokens.set(scope, { only: only.token, others: others.token })
	}
	for (const { path, method, scope } of guarded) {
		const { only = '', others = '' } = tokens.get(scope) ?? {}
		const reply = await callRoute(gateway, method, path, others)
		assertError(
			t,
			reply,
			{ status: 403, code: 'forbidden', message: new RegExp(`needs the scope ${RegExp.escape(scope)};`) },
			`${method} ${path}`,
		)
		t.equal(reply.headers.get('www-authenticate'), `Bearer error="insufficient_scope", scope="${scope}"`)
		for (const good of [only, by]) {
			const { status } = await callRoute(gateway, method, path, good)
			const isHandled = status < 500 || (isOnCluster && path === '/v1/backups')
			t.ok(status !== 401 && status !== 403 && isHandled, `${method} ${path} with ${scope}: ${status}`)
		}
	}
})

void t.test('failed attempts', async (t) => {
	const gateway = await gatewayFor(t, tokenMode)
	const good = (await addToken(gateway, ['agents:read'])).token
	const bad = () => gateway.request('GET', '/v1/agents', { token: unknownToken })

	await t.test('requests without a token do not count', async (t) => {
		for (let n = 0; n < 15; n++) t.equal((await gateway.request('GET', '/v1/agents')).status, 401)
	})
	await t.test('after ten in a minute, the next ones get 429 with the time to wait', async (t) => {
		for (let n = 0; n < 10; n++) t.equal((await bad()).status, 401)
		const reply = await bad()
		assertError(t, reply, { status: 429, code: 'rate_limited', message: /wait \d+ s/ })
		const seconds = Number(reply.headers.get('retry-after'))
		t.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60, `retry-after ${seconds}`)
	})
	await t.test('a valid token from the same address still works', async (t) => {
		t.equal((await gateway.request('GET', '/v1/agents', { token: good })).status, 200)
		t.equal((await bad()).status, 429, 'and does not reset the count')
	})
	await t.test('routes that need no token still work', async (t) => {
		t.equal((await gateway.request('GET', '/healthz')).status, 200)
	})
})

void t.test('guesses of the set-up code count as failed attempts, which do not affect local callers', async (t) => {
	const gateway = await gatewayFor(t)
	const guess = () =>
		gateway.request('POST', '/v1/auth/tokens', {
			body: { scopes: ['*'] },
			headers: { 'x-forwarded-for': '192.0.2.7', 'x-setup-code': 'guess' },
		})
	for (let n = 0; n < 10; n++) t.equal((await guess()).status, 401)
	assertError(t, await guess(), { status: 429, code: 'rate_limited' })
	t.equal((await gateway.request('GET', '/v1/agents')).status, 200, 'a local caller is not affected')
})

void t.test('refused requests emit security.violation without secrets, at most 60 a minute per reason', async (t) => {
	const gateway = await gatewayFor(t)
	const headers = { 'x-forwarded-for': '192.0.2.7', 'x-setup-code': 'guessed-code' }
	const guess = { body: { scopes: ['*'] }, headers }
	t.equal((await gateway.request('POST', '/v1/auth/tokens', guess)).status, 401)
	const [reader, revoked] = [await addToken(gateway, ['agents:read']), await addToken(gateway, ['agents:read'])]
	await gateway.request('DELETE', `/v1/auth/tokens/${revoked.id}`)
	const expires = Date.now() + 3_600_000
	const expiring = await addToken(gateway, ['*'], { ttl: new Date(expires).toISOString() })
	const status = async (path: string, token: string) => (await gateway.request('GET', path, { token })).status
	t.equal(await status('/v1/vault/secrets?q=said-in-path', reader.token), 403)
	t.equal(await status('/v1/agents', revoked.token), 401)
	const real = Date.now
	t.teardown(() => (Date.now = real))
	Date.now = () => expires
	t.equal(await status('/v1/agents', expiring.token), 401)
	Date.now = real
	const unknown = await Promise.all(Array.from({ length: 100 }, () => status('/v1/agents', unknownToken)))
	t.strictSame(new Set(unknown), new Set([401, 429]))

	const violations = async (): Promise<Answer[]> =>
		(await gateway.request('GET', '/v1/audit?event_type=security.violation&limit=500')).body.events
	const all = await eventually(violations, ({ length }) => length >= 64)
	const stored = JSON.stringify(all)
	for (const text of [unknownToken, revoked.token, reader.token, expiring.token, 'guessed-code', 'said-in-path'])
		t.notOk(stored.includes(text), text)
	const payloadsOf = (reason: string) =>
		all.filter(({ payload }) => payload.reason === reason).map(({ payload }) => payload)
	t.equal(payloadsOf('token_invalid').length, 60)
	t.match(payloadsOf('token_invalid')[0], { message: /unknown/, source_ip: /127\.0\.0\.1/ })
	t.notOk('token_id' in payloadsOf('token_invalid')[0])
	t.match(payloadsOf('token_revoked'), [{ token_id: revoked.id, message: /revoked/ }])
	t.match(payloadsOf('token_expired'), [{ token_id: expiring.id, message: /expired/ }])
	t.match(payloadsOf('scope_missing'), [{ token_id: reader.id, message: /vault:read/ }])
	t.match(payloadsOf('setup_code_wrong'), [{ message: /set-up code is wrong/ }])
	t.equal(all.length, 64)
})

void t.test('a change of auth_mode applies at once, and ends the streams of callers without a token', async (t) => {
	const gateway = await gatewayFor(t, { config: 'auth_mode: loopback\n' })
	const { token } = await addToken(gateway, ['events:read', 'agents:read', 'tokens:admin'])
	const withoutToken = await openStream(gateway.url)
	const withToken = await openStream(gateway.url, { token })
	t.teardown(() => withToken.close())

	const reloaded = withToken.waitFor('config.reloaded')
	writeFileSync(join(gateway.home, 'config/gateway.yaml'), 'auth_mode: token\n')
	await reloaded
	assertError(t, await gateway.request('GET', '/v1/agents'), {
		status: 401,
		code: 'unauthorized',
		message: /auth_mode is token/,
	})
	t.equal((await gateway.request('GET', '/v1/agents', { token })).status, 200)
	t.not(await withoutToken.closed, 'closed', 'the gateway ended the stream without a token')
	const again = withToken.waitFor('config.reloaded', 2)
	writeFileSync(join(gateway.home, 'config/gateway.yaml'), 'auth_mode: loopback\n')
	await again
	t.equal((await gateway.request('GET', '/v1/agents')).status, 200, 'loopback mode applies again')
})

void t.test('SVC_LOOPBACK overrides auth_mode in gateway.yaml', async (t) => {
	const gateway = await gatewayFor(t, { config: 'auth_mode: token\n', env: { SVC_LOOPBACK: 'yes' } })
	t.equal((await gateway.request('GET', '/v1/agents')).status, 200)
})

void t.test('loopback mode at an address that other machines can reach causes a warning at the start', async (t) => {
	const errorsOf = async (env: NodeJS.ProcessEnv): Promise<string> => {
		const home = testFolder(t)
		const gateway = await spawnGateway(home, env)
		await gateway.end()
		return gateway.errors()
	}
	const warning = /auth_mode is loopback and the gateway listens at 0\.0\.0\.0.*set auth_mode: token/
	t.match(await errorsOf({ SVC_HOST: '0.0.0.0' }), warning)
	t.notMatch(await errorsOf({ SVC_HOST: '0.0.0.0', SVC_LOOPBACK: 'off' }), warning)
	t.notMatch(await errorsOf({ SVC_HOST: '127.0.0.2' }), /auth_mode is loopback/)
})

void t.test('routes of a third-party plugin', async (t) => {
	const route = (path: string, auth: string) =>
		`server.route({ method: 'GET', path: '${path}', options: { ${auth} }, handler: () => 'in' })\n`
	const plugin = (name: string, routes: string, needs = "needs: ['auth'],") =>
		`export default { name: '${name}', ${needs} http(server) { ${routes} } }`
	const gateway = await gatewayFor(t, {
		...tokenMode,
		config: 'plugins: {shop: true}\n',
		files: {
			'plugins/shop/index.js': plugin(
				'shop',
				route('/v1/shop/silent', '') +
					route('/v1/shop/scoped', "auth: { access: { scope: ['agents:read', '*'] } }") +
					route('/v1/shop/open', 'auth: false'),
				'',
			),
		},
	})
	const admin = (await addToken(gateway, ['*'])).token
	const reader = (await addToken(gateway, ['agents:read'], { by: admin })).token
	const get = async (path: string, token?: string) =>
		(await gateway.request('GET', path, token === undefined ? {} : { token })).status

	await t.test('require the scope * by default, even if the plugin does not need `auth`', async (t) => {
		t.equal(await get('/v1/shop/silent'), 401)
		t.equal(await get('/v1/shop/silent', reader), 403)
		t.equal(await get('/v1/shop/silent', admin), 200)
	})
	await t.test('can require another scope', async (t) => {
		t.equal(await get('/v1/shop/scoped'), 401)
		t.equal(await get('/v1/shop/scoped', reader), 200)
		t.equal(await get('/v1/shop/scoped', admin), 200)
	})
	await t.test('are public only with `auth: false`', async (t) => {
		t.equal(await get('/v1/shop/open'), 200)
	})

	const loopholes: Record<string, { auth: string; message: RegExp }> = {
		'has the mode try': { auth: "auth: { mode: 'try' }", message: /GET \/v1\/hole does not require/ },
		'has the mode optional': {
			auth: "auth: { mode: 'optional', access: { scope: ['*'] } }",
			message: /does not require/,
		},
		'has no access rule': { auth: "auth: 'gateway'", message: /exactly one rule of access/ },
		'only excludes a scope': {
			auth: "auth: { access: { scope: ['!agents:read', '*'] } }",
			message: /exactly one rule/,
		},
		'has two access rules': {
			auth: "auth: { access: [{ scope: ['*'] }, { entity: 'app' }] }",
			message: /exactly one rule/,
		},
		'does not accept the scope *': { auth: "auth: { access: { scope: ['agents:read'] } }", message: /refuses callers/ },
		'requires an unknown scope': {
			auth: "auth: { access: { scope: ['agent:read', '*'] } }",
			message: /"agent:read", which no token/,
		},
	}
	for (const [at, [what, { auth, message }]] of Object.entries(loopholes).entries()) {
		await t.test(`fail the plugin if one ${what}`, async (t) => {
			const name = `hole${at + 1}`
			mkdirSync(join(gateway.home, 'plugins', name))
			writeFileSync(join(gateway.home, 'plugins', name, 'index.js'), plugin(name, route('/v1/hole', auth)))
			const stream = await openStream(gateway.url, { token: admin })
			t.teardown(() => stream.close())
			const isAbout = (message: unknown): boolean => String(message).includes(`"${name}"`)
			const rejected = stream.waitFor((event) => event.event_type === 'plugin.failed' && isAbout(event.payload.message))
			writeFileSync(join(gateway.home, 'config/gateway.yaml'), `plugins: {shop: true, ${name}: true}\n`)
			t.match((await rejected).payload.message, message)
			t.equal(await get('/v1/hole', admin), 404)
			t.equal(await get('/v1/shop/open'), 200, 'the running plugin still works')
		})
	}
})

/** Calls an operation without a body, with placeholders for parameters. The body of a stream is not read. */
async function callRoute(gateway: TestGateway, method: string, path: string, token: string): Promise<Reply<Answer>> {
	const url = gateway.url + path.replaceAll(/\{\w+\}/g, 'nothing')
	const response = await fetch(url, { method: method.toUpperCase(), headers: { authorization: `Bearer ${token}` } })
	const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
	if (isStream) await response.body?.cancel()
	const text = isStream ? '' : await response.text()
	return { status: response.status, headers: response.headers, body: text.startsWith('{') ? JSON.parse(text) : text }
}
