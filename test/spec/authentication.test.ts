/** Modes, scopes and failed attempts; who counts as local is in test/plugins/auth/local.test.ts. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { makeHome, startGateway } from '../support/gateway.ts'
import type { GatewayOptions, Reply, Answer, TestGateway } from '../support/gateway.ts'
import { isOnCluster } from '../support/nats.ts'
import { operationsOf } from '../support/openapi.ts'
import type { Described } from '../support/openapi.ts'
import { spawnGateway } from '../support/process.ts'
import { refused } from '../support/refused.ts'
import { openStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'

const tokenMode = { env: { SVC_LOOPBACK: '0' } }
const scopes = ['agents:read', 'agents:write', 'runs:write', 'vault:read', 'vault:write', 'tokens:admin', 'events:read']
const unknownToken = `svc_${'x'.repeat(43)}`

async function gatewayFor(t: Test, options: GatewayOptions = {}): Promise<TestGateway> {
	const gateway = await startGateway(options)
	t.teardown(() => gateway.stop())
	return gateway
}

async function newToken(
	gateway: TestGateway,
	wanted: string[],
	admin?: string,
): Promise<{ id: string; token: string }> {
	const { status, body } = await gateway.request('POST', '/v1/auth/tokens', {
		body: { scopes: wanted },
		...(admin !== undefined && { token: admin }),
	})
	if (status !== 201) throw new Error(JSON.stringify(body))
	return body
}

void t.test('in loopback mode', async (t) => {
	const gateway = await gatewayFor(t)
	const { token } = await newToken(gateway, ['agents:read'])

	await t.test('a local caller needs no token and may do everything', async (t) => {
		t.equal((await gateway.request('GET', '/v1/agents')).status, 200)
		t.equal((await gateway.request('GET', '/v1/auth/tokens')).status, 200)
		t.equal((await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })).status, 201)
	})
	await t.test('a token that is presented is checked, and its scopes hold', async (t) => {
		t.equal((await gateway.request('GET', '/v1/agents', { token })).status, 200)
		refused(t, await gateway.request('POST', '/v1/agents', { token, body: { name: 'bob' } }), {
			status: 403,
			code: 'forbidden',
		})
		refused(t, await gateway.request('GET', '/v1/agents', { token: unknownToken }), {
			status: 401,
			code: 'unauthorized',
		})
	})
	await t.test('a caller from elsewhere needs a token, and one is enough', async (t) => {
		const headers = { 'x-forwarded-for': '192.0.2.7' }
		const reply = await gateway.request('GET', '/v1/agents', { headers })
		refused(t, reply, { status: 401, code: 'unauthorized', says: /send a token.*proxy/ })
		t.equal(reply.headers.get('www-authenticate'), 'Bearer')
		t.equal((await gateway.request('GET', '/v1/agents', { headers, token })).status, 200)
	})
})

void t.test('in token mode', async (t) => {
	const gateway = await gatewayFor(t, tokenMode)
	const admin = (await newToken(gateway, ['*'])).token

	await t.test('every request needs a token', async (t) => {
		const reply = await gateway.request('GET', '/v1/agents')
		refused(t, reply, { status: 401, code: 'unauthorized', says: /auth_mode is token/ })
		t.equal(reply.headers.get('www-authenticate'), 'Bearer')
		t.equal((await gateway.request('GET', '/v1/agents', { token: admin })).status, 200)
	})
	await t.test('the scheme may be written in any case', async (t) => {
		const headers = { authorization: `bEARER   ${admin}` }
		t.equal((await gateway.request('GET', '/v1/agents', { headers })).status, 200)
	})
	await t.test('anything else in its place is refused as a token that is none', async (t) => {
		const wrong = [
			'Bearer',
			`Basic ${admin}`,
			admin,
			`Bearer ${admin} x`,
			`Bearer ${admin.slice(0, -1)}`,
			`Bearer ${admin}A`,
		]
		for (const authorization of wrong) {
			const reply = await gateway.request('GET', '/v1/agents', { headers: { authorization } })
			refused(t, reply, { status: 401, code: 'unauthorized' })
			t.equal(reply.headers.get('www-authenticate'), 'Bearer error="invalid_token"')
		}
	})
	await t.test('health and the description of the API need none', async (t) => {
		for (const path of ['/healthz', '/readyz', '/v1/health', '/v1/openapi.json']) {
			t.equal((await gateway.request('GET', path)).status, 200, path)
		}
	})
	await t.test('the token is asked for before the body is looked at', async (t) => {
		const reply = await gateway.request('POST', '/v1/agents', { body: '{"name":' })
		refused(t, reply, { status: 401, code: 'unauthorized' })
	})
})

void t.test('each operation takes the scope that it names and * and no other', async (t) => {
	const gateway = await gatewayFor(t, tokenMode)
	const admin = (await newToken(gateway, ['*'])).token
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
		const [only, others] = [await newToken(gateway, [scope], admin), await newToken(gateway, rest, admin)]
		tokens.set(scope, { only: only.token, others: others.token })
	}
	for (const { path, method, scope } of guarded) {
		const { only = '', others = '' } = tokens.get(scope) ?? {}
		const reply = await ask(gateway, method, path, others)
		refused(
			t,
			reply,
			{ status: 403, code: 'forbidden', says: new RegExp(`needs the scope ${RegExp.escape(scope)};`) },
			`${method} ${path}`,
		)
		t.equal(reply.headers.get('www-authenticate'), `Bearer error="insufficient_scope", scope="${scope}"`)
		for (const good of [only, admin]) {
			const { status } = await ask(gateway, method, path, good)
			const isTaken = status < 500 || (isOnCluster && path === '/v1/backups')
			t.ok(status !== 401 && status !== 403 && isTaken, `${method} ${path} with ${scope}: ${status}`)
		}
	}
})

void t.test('failed attempts', async (t) => {
	const gateway = await gatewayFor(t, tokenMode)
	const good = (await newToken(gateway, ['agents:read'])).token
	const bad = () => gateway.request('GET', '/v1/agents', { token: unknownToken })

	await t.test('requests without a token do not count', async (t) => {
		for (let n = 0; n < 15; n++) t.equal((await gateway.request('GET', '/v1/agents')).status, 401)
	})
	await t.test('after ten in a minute more are answered 429 with the time to wait', async (t) => {
		for (let n = 0; n < 10; n++) t.equal((await bad()).status, 401)
		const reply = await bad()
		refused(t, reply, { status: 429, code: 'rate_limited', says: /wait \d+ s/ })
		const seconds = Number(reply.headers.get('retry-after'))
		t.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60, `retry-after ${seconds}`)
	})
	await t.test('a valid token of the same address is not locked out', async (t) => {
		t.equal((await gateway.request('GET', '/v1/agents', { token: good })).status, 200)
		t.equal((await bad()).status, 429, 'and does not reset the count')
	})
	await t.test('what needs no token stays open', async (t) => {
		t.equal((await gateway.request('GET', '/healthz')).status, 200)
	})
})

void t.test(
	'guesses of the set-up code count as failed attempts, and the right token of a first caller still works',
	async (t) => {
		const gateway = await gatewayFor(t)
		const guess = () =>
			gateway.request('POST', '/v1/auth/tokens', {
				body: { scopes: ['*'] },
				headers: { 'x-forwarded-for': '192.0.2.7', 'x-setup-code': 'guess' },
			})
		for (let n = 0; n < 10; n++) t.equal((await guess()).status, 401)
		refused(t, await guess(), { status: 429, code: 'rate_limited' })
		t.equal((await gateway.request('GET', '/v1/agents')).status, 200, 'a local caller is not concerned')
	},
)

void t.test(
	'refused callers are security violations, at most 60 a minute of each cause, without what they sent',
	async (t) => {
		const gateway = await gatewayFor(t)
		const elsewhere = { 'x-forwarded-for': '192.0.2.7' }
		const guess = { body: { scopes: ['*'] }, headers: { ...elsewhere, 'x-setup-code': 'guessed-code' } }
		t.equal((await gateway.request('POST', '/v1/auth/tokens', guess)).status, 401)
		const [reader, revoked] = [await newToken(gateway, ['agents:read']), await newToken(gateway, ['agents:read'])]
		await gateway.request('DELETE', `/v1/auth/tokens/${revoked.id}`)
		const ttl = new Date(Date.now() + 3_000).toISOString()
		const { body: expiring } = await gateway.request('POST', '/v1/auth/tokens', { body: { scopes: ['*'], ttl } })
		const status = async (path: string, token: string) => (await gateway.request('GET', path, { token })).status
		t.equal(await status('/v1/vault/secrets?q=said-in-path', reader.token), 403)
		t.equal(await status('/v1/agents', revoked.token), 401)
		await eventually(
			() => status('/v1/agents', expiring.token),
			(code) => code !== 200,
		)
		const wrong = await Promise.all(Array.from({ length: 100 }, () => status('/v1/agents', unknownToken)))
		t.strictSame(new Set(wrong), new Set([401, 429]))

		const violations = async (): Promise<Answer[]> =>
			(await gateway.request('GET', '/v1/audit?event_type=security.violation&limit=500')).body.events
		const all = await eventually(violations, ({ length }) => length >= 64)
		const shown = JSON.stringify(all)
		for (const text of [unknownToken, revoked.token, reader.token, expiring.token, 'guessed-code', 'said-in-path'])
			t.notOk(shown.includes(text), text)
		const of = (reason: string) => all.filter(({ payload }) => payload.reason === reason).map(({ payload }) => payload)
		t.equal(of('token_invalid').length, 60)
		t.match(of('token_invalid')[0], { message: /unknown/, source_ip: /127\.0\.0\.1/ })
		t.notOk('token_id' in of('token_invalid')[0])
		t.match(of('token_revoked'), [{ token_id: revoked.id, message: /revoked/ }])
		t.match(of('token_expired'), [{ token_id: expiring.id, message: /expired/ }])
		t.match(of('scope_missing'), [{ token_id: reader.id, message: /vault:read/ }])
		t.match(of('setup_code_wrong'), [{ message: /set-up code is wrong/ }])
		t.equal(all.length, 64)
	},
)

void t.test('auth_mode changes while the gateway runs, and ends the streams of local callers', async (t) => {
	const gateway = await gatewayFor(t, { config: 'auth_mode: loopback\n' })
	const { token } = await newToken(gateway, ['events:read', 'agents:read', 'tokens:admin'])
	const nobodys = await openStream(gateway.url)
	const somebodys = await openStream(gateway.url, { token })
	t.teardown(() => somebodys.close())

	const reloaded = somebodys.waitFor('config.reloaded')
	writeFileSync(join(gateway.home, 'config/gateway.yaml'), 'auth_mode: token\n')
	await reloaded
	refused(t, await gateway.request('GET', '/v1/agents'), {
		status: 401,
		code: 'unauthorized',
		says: /auth_mode is token/,
	})
	t.equal((await gateway.request('GET', '/v1/agents', { token })).status, 200)
	t.not(await nobodys.closed, 'closed', 'the stream without a token was ended by the gateway')
	const again = somebodys.waitFor('config.reloaded', 2)
	writeFileSync(join(gateway.home, 'config/gateway.yaml'), 'auth_mode: loopback\n')
	await again
	t.equal((await gateway.request('GET', '/v1/agents')).status, 200, 'and back')
})

void t.test('the file says token and the environment loopback: the environment wins', async (t) => {
	const gateway = await gatewayFor(t, { config: 'auth_mode: token\n', env: { SVC_LOOPBACK: 'yes' } })
	t.equal((await gateway.request('GET', '/v1/agents')).status, 200)
})

void t.test('loopback mode at an address that other machines reach starts with a warning', async (t) => {
	const errorsOf = async (env: NodeJS.ProcessEnv): Promise<string> => {
		const home = makeHome()
		t.teardown(() => rmSync(home, { recursive: true, force: true }))
		const gateway = await spawnGateway(home, env)
		await gateway.end()
		return gateway.errors()
	}
	const warning = /auth_mode is loopback and the gateway listens at 0\.0\.0\.0.*set auth_mode: token/
	t.match(await errorsOf({ SVC_HOST: '0.0.0.0' }), warning)
	t.notMatch(await errorsOf({ SVC_HOST: '0.0.0.0', SVC_LOOPBACK: 'off' }), warning)
	t.notMatch(await errorsOf({ SVC_HOST: '127.0.0.2' }), /auth_mode is loopback/)
})

void t.test("routes of a third party's plugin", async (t) => {
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
	const admin = (await newToken(gateway, ['*'])).token
	const reader = (await newToken(gateway, ['agents:read'], admin)).token
	const get = async (path: string, token?: string) =>
		(await gateway.request('GET', path, token === undefined ? {} : { token })).status

	await t.test('need the scope * where they say nothing, though the plugin does not even name auth', async (t) => {
		t.equal(await get('/v1/shop/silent'), 401)
		t.equal(await get('/v1/shop/silent', reader), 403)
		t.equal(await get('/v1/shop/silent', admin), 200)
	})
	await t.test('may ask for a scope', async (t) => {
		t.equal(await get('/v1/shop/scoped'), 401)
		t.equal(await get('/v1/shop/scoped', reader), 200)
		t.equal(await get('/v1/shop/scoped', admin), 200)
	})
	await t.test('are open only where they say so', async (t) => {
		t.equal(await get('/v1/shop/open'), 200)
	})

	const loopholes: Record<string, { auth: string; says: RegExp }> = {
		'tries authentication only': { auth: "auth: { mode: 'try' }", says: /GET \/v1\/hole does not require/ },
		'makes it optional': { auth: "auth: { mode: 'optional', access: { scope: ['*'] } }", says: /does not require/ },
		'takes any caller': { auth: "auth: 'gateway'", says: /exactly one rule of access/ },
		'takes any caller but some': {
			auth: "auth: { access: { scope: ['!agents:read', '*'] } }",
			says: /exactly one rule/,
		},
		'has a second rule': { auth: "auth: { access: [{ scope: ['*'] }, { entity: 'app' }] }", says: /exactly one rule/ },
		'shuts out *': { auth: "auth: { access: { scope: ['agents:read'] } }", says: /refuses callers/ },
		'asks for an unknown scope': {
			auth: "auth: { access: { scope: ['agent:read', '*'] } }",
			says: /"agent:read", which no token/,
		},
	}
	let number = 0
	for (const [what, { auth, says }] of Object.entries(loopholes)) {
		await t.test(`refuse the plugin where one ${what}`, async (t) => {
			const name = `hole${++number}`
			const file = makePlugin(gateway, name, plugin(name, route('/v1/hole', auth)))
			const stream = await openStream(gateway.url, { token: admin })
			t.teardown(() => stream.close())
			const isAbout = (message: unknown): boolean => String(message).includes(`"${name}"`)
			const rejected = stream.waitFor((event) => event.event_type === 'plugin.failed' && isAbout(event.payload.message))
			writeFileSync(file, `plugins: {shop: true, ${name}: true}\n`)
			t.match((await rejected).payload.message, says)
			t.equal(await get('/v1/hole', admin), 404)
			t.equal(await get('/v1/shop/open'), 200, 'what ran runs on')
		})
	}
})

/** Answers with the path of gateway.yaml. */
function makePlugin(gateway: TestGateway, name: string, code: string): string {
	mkdirSync(join(gateway.home, 'plugins', name))
	writeFileSync(join(gateway.home, 'plugins', name, 'index.js'), code)
	return join(gateway.home, 'config/gateway.yaml')
}

/** One request without a proper body; of a stream only its beginning. */
async function ask(gateway: TestGateway, method: string, path: string, token: string): Promise<Reply<Answer>> {
	const url = gateway.url + path.replaceAll(/\{\w+\}/g, 'nothing')
	const response = await fetch(url, { method: method.toUpperCase(), headers: { authorization: `Bearer ${token}` } })
	const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
	if (isStream) await response.body?.cancel()
	const text = isStream ? '' : await response.text()
	return { status: response.status, headers: response.headers, body: text.startsWith('{') ? JSON.parse(text) : text }
}
