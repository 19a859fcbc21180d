/** Tokens: the spec's table, the bootstrap, and errors of invalid requests. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { gatewayFor, send, startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { spawnGateway } from '../support/process.ts'
import { assertError } from '../support/error-response.ts'
import { testFolder } from '../support/folder.ts'
import { eventually } from '../support/wait.ts'

const tokenMode = { env: { SVC_LOOPBACK: 'off' } }
const remote = { 'x-forwarded-for': '192.0.2.7' }

void t.test('in loopback mode', async (t) => {
	const gateway = await gatewayFor(t)
	const create = (body: unknown) => gateway.request('POST', '/v1/auth/tokens', { body })
	const statusOf = async (id: string): Promise<string | undefined> => {
		const { body } = await gateway.request('GET', '/v1/auth/tokens')
		return body.tokens.find((one: { id: string }) => one.id === id)?.status
	}

	await t.test('POST /v1/auth/tokens answers 201 with the token, which then works', async (t) => {
		const { status, body } = await create({ scopes: ['agents:read', 'runs:write'], ttl: '2099-01-31T12:00:00+02:00' })
		t.equal(status, 201)
		t.strictSame(Object.keys(body).toSorted(), ['created_at', 'expires_at', 'id', 'scopes', 'token'])
		t.match(body, {
			id: String,
			token: /^svc_[A-Za-z0-9_-]{43}$/,
			scopes: ['agents:read', 'runs:write'],
			expires_at: '2099-01-31T10:00:00.000Z',
			created_at: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
		})
		t.equal((await gateway.request('GET', '/v1/agents', { token: body.token })).status, 200)
	})

	await t.test('a token without ttl never expires', async (t) => {
		t.equal((await create({ scopes: ['*'] })).body.expires_at, null)
	})

	await t.test('every token and every id is unique', async (t) => {
		const made = await Promise.all(Array.from({ length: 20 }, () => create({ scopes: ['*'] })))
		t.equal(new Set(made.map(({ body }) => body.token)).size, 20)
		t.equal(new Set(made.map(({ body }) => body.id)).size, 20)
	})

	await t.test('GET /v1/auth/tokens lists them without their text', async (t) => {
		const made = (await create({ scopes: ['vault:read'] })).body
		const { status, body } = await gateway.request('GET', '/v1/auth/tokens')
		t.equal(status, 200)
		t.strictSame(body.tokens.at(-1), {
			id: made.id,
			scopes: ['vault:read'],
			status: 'active',
			expires_at: null,
			created_at: made.created_at,
		})
		t.notOk(JSON.stringify(body).includes('svc_'))
	})

	await t.test('DELETE /v1/auth/tokens/{id} revokes at once, and may be repeated', async (t) => {
		const { id, token } = (await create({ scopes: ['agents:read'] })).body
		t.equal((await gateway.request('GET', '/v1/agents', { token })).status, 200)
		const { status, body } = await gateway.request('DELETE', `/v1/auth/tokens/${id}`)
		t.equal(status, 200)
		t.strictSame(body, { id, status: 'revoked' })
		assertError(t, await gateway.request('GET', '/v1/agents', { token }), {
			status: 401,
			code: 'unauthorized',
			message: /was revoked/,
		})
		t.equal(await statusOf(id), 'revoked')
		t.strictSame((await gateway.request('DELETE', `/v1/auth/tokens/${id}`)).body, { id, status: 'revoked' })
	})

	await t.test('a token is refused from its ttl on, and listed as expired', async (t) => {
		const expires = Date.now() + 3_600_000
		const { id, token } = (await create({ scopes: ['agents:read'], ttl: new Date(expires).toISOString() })).body
		const real = Date.now
		t.teardown(() => (Date.now = real))
		Date.now = () => expires - 1
		t.equal((await gateway.request('GET', '/v1/agents', { token })).status, 200, 'not before its ttl')
		Date.now = () => expires
		assertError(t, await gateway.request('GET', '/v1/agents', { token }), {
			status: 401,
			code: 'unauthorized',
			message: /expired at/,
		})
		t.equal(await statusOf(id), 'expired')
	})

	await t.test('an unknown id answers 404', async (t) => {
		assertError(t, await gateway.request('DELETE', '/v1/auth/tokens/none'), {
			status: 404,
			code: 'not_found',
			message: /GET \/v1\/auth\/tokens/,
		})
	})

	await t.test('creating and revoking are events, without the text of the token', async (t) => {
		const { id, token } = (await create({ scopes: ['events:read'] })).body
		await gateway.request('DELETE', `/v1/auth/tokens/${id}`)
		const { body } = await gateway.request('GET', '/v1/audit?event_type=token.*&limit=2')
		const [revoked, created] = body.events
		t.match(created, {
			event_type: 'token.created',
			agent_id: null,
			run_id: null,
			sequence: 0,
			payload: { token_id: id, scopes: ['events:read'], expires_at: null },
		})
		t.match(revoked, { event_type: 'token.revoked', payload: { token_id: id } })
		t.notOk(JSON.stringify(body).includes(token))
	})

	await t.test('the text of a token is in no file of the home', async (t) => {
		const { token } = (await create({ scopes: ['*'] })).body
		const files = readdirSync(gateway.home, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
		t.ok(files.length > 1)
		for (const file of files) {
			const path = join(file.parentPath, file.name)
			t.notOk(readFileSync(path).includes(token.slice('svc_'.length)), path)
		}
	})

	const bad: Record<string, { body: unknown; path: string; message: RegExp }> = {
		'an empty object': { body: {}, path: 'scopes', message: /scopes is required/ },
		'no scopes': { body: { scopes: [] }, path: 'scopes', message: /at least one scope/ },
		'scopes as a string': { body: { scopes: 'agents:read' }, path: 'scopes', message: /scopes must be an array/ },
		'an unknown scope': {
			body: { scopes: ['agents:reed'] },
			path: 'scopes.0',
			message: /one of agents:read, agents:write/,
		},
		'a scope that is not a string': { body: { scopes: [7] }, path: 'scopes.0', message: /one of/ },
		'a scope twice': { body: { scopes: ['*', '*'] }, path: 'scopes.1', message: /duplicate/ },
		'a ttl in the past': {
			body: { scopes: ['*'], ttl: '2020-01-01T00:00:00Z' },
			path: 'ttl',
			message: /in the future/,
		},
		'a ttl that is not a time': { body: { scopes: ['*'], ttl: 'tomorrow' }, path: 'ttl', message: /ISO 8601/ },
		'a ttl on a day that does not exist': {
			body: { scopes: ['*'], ttl: '2099-02-30' },
			path: 'ttl',
			message: /ISO 8601/,
		},
		'a ttl as a number': { body: { scopes: ['*'], ttl: 3600 }, path: 'ttl', message: /must be a string/ },
		'a ttl of null': { body: { scopes: ['*'], ttl: null }, path: 'ttl', message: /must be a string/ },
		'an unknown field': { body: { scopes: ['*'], name: 'x' }, path: 'name', message: /name is not allowed/ },
		'an array': { body: [], path: '', message: /must be of type object/ },
	}
	for (const [what, { body, path, message }] of Object.entries(bad)) {
		await t.test(`POST with ${what} answers 400 with what to change`, async (t) => {
			assertError(t, await create(body), { status: 400, code: 'invalid_request', path, message })
		})
	}
	await t.test('a body that is missing, malformed, too large or of another type is refused', async (t) => {
		const post = (options: Parameters<TestGateway['request']>[2]) => gateway.request('POST', '/v1/auth/tokens', options)
		assertError(t, await post({}), { status: 400, code: 'invalid_request' })
		assertError(t, await post({ body: '{"scopes": [' }), { status: 400, code: 'invalid_request' })
		assertError(t, await post({ body: 'x'.repeat(1024 * 1024 + 1) }), { status: 413, code: 'payload_too_large' })
		for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
			const reply = await post({ body: '{"scopes":["*"]}', headers: { 'content-type': type } })
			assertError(t, reply, { status: 415, code: 'unsupported_media_type' })
		}
	})
})

void t.test('the bootstrap in token mode', async (t) => {
	const gateway = await gatewayFor(t, tokenMode)
	const create = (options: object = {}) =>
		gateway.request('POST', '/v1/auth/tokens', { body: { scopes: ['tokens:admin'] }, ...options })

	await t.test('permits only the creation of a token', async (t) => {
		for (const [method, path] of [
			['GET', '/v1/auth/tokens'],
			['DELETE', '/v1/auth/tokens/x'],
			['GET', '/v1/agents'],
			['GET', '/v1/events/stream'],
		] as const) {
			assertError(t, await gateway.request(method, path), { status: 401, code: 'unauthorized' }, `${method} ${path}`)
		}
	})
	await t.test('requires the set-up code of a remote caller', async (t) => {
		assertError(t, await create({ headers: remote }), { status: 401, code: 'unauthorized', message: /X-Setup-Code/ })
		const guess = await create({ headers: { ...remote, 'x-setup-code': 'guess' } })
		assertError(t, guess, { status: 401, code: 'unauthorized', message: /set-up code is wrong/ })
	})
	await t.test('is not used up by a refused request', async (t) => {
		assertError(t, await create({ body: { scopes: [] } }), { status: 400, code: 'invalid_request' })
		assertError(t, await create({ token: `svc_${'x'.repeat(43)}` }), {
			status: 401,
			code: 'unauthorized',
			message: /unknown/,
		})
	})
	await t.test('succeeds for exactly one of 100 clients at once', async (t) => {
		const replies = await Promise.all(Array.from({ length: 100 }, () => create()))
		const made = replies.filter((reply) => reply.status === 201)
		t.equal(made.length, 1)
		for (const reply of replies) if (reply.status !== 201) assertError(t, reply, { status: 401, code: 'unauthorized' })
		const { token, id } = made[0]?.body ?? {}
		const { body } = await gateway.request('GET', '/v1/auth/tokens', { token })
		t.equal(body.tokens.length, 1, 'the other requests created no token')

		t.equal((await create({ token })).status, 201, 'the first token creates others')
		t.equal(
			(await gateway.request('DELETE', `/v1/auth/tokens/${id}`, { token })).status,
			200,
			'the first token can revoke itself',
		)
	})
	await t.test('stays over even if its token is revoked', async (t) => {
		assertError(t, await create(), { status: 401, code: 'unauthorized', message: /send a token/ })
	})
})

void t.test('a first token in loopback mode ends the bootstrap, also after a restart', async (t) => {
	const home = testFolder(t)
	const open = await startGateway({ home })
	const { token } = (await open.request('POST', '/v1/auth/tokens', { body: { scopes: ['agents:read'] } })).body
	await open.stop()

	const closed = await gatewayFor(t, { home, ...tokenMode })
	const reply = await closed.request('POST', '/v1/auth/tokens', { body: { scopes: ['*'] } })
	assertError(t, reply, { status: 401, code: 'unauthorized' })
	t.equal((await closed.request('GET', '/v1/agents', { token })).status, 200, 'the token outlived the restart')
})

void t.test('creating a token requires the scope tokens:admin', async (t) => {
	const gateway = await gatewayFor(t, tokenMode)
	const create = (scopes: string[], token?: string) =>
		gateway.request('POST', '/v1/auth/tokens', { body: { scopes }, ...(token !== undefined && { token }) })
	const admin = (await create(['tokens:admin'])).body.token
	const reader = (await create(['agents:read'], admin)).body.token
	assertError(t, await create(['agents:read'], reader), { status: 403, code: 'forbidden', message: /tokens:admin/ })
	t.equal((await create(['*'], admin)).status, 201)
})

void t.test('until a first token exists the log shows the set-up code, for one remote caller', async (t) => {
	const home = testFolder(t)
	const env = { SVC_LOOPBACK: 'off', SVC_LOG_LEVEL: 'info' }
	const codeIn = (log: string): string | undefined => /X-Setup-Code: ([A-Za-z0-9_-]{20})/.exec(log)?.[1]
	const first = await spawnGateway(home, env)
	const code = (await eventually(() => codeIn(first.errors()))) ?? ''
	const create = (url: string) =>
		send(`${url}/v1/auth/tokens`, 'POST', {
			body: { scopes: ['*'] },
			headers: { ...remote, 'x-setup-code': code },
		})
	const { status, body } = await create(first.url)
	t.equal(status, 201)
	assertError(t, await create(first.url), { status: 401, code: 'unauthorized' }, 'a second time')
	t.notOk(first.errors().includes(body.token), 'the log does not show the token')
	await first.kill()

	const second = await spawnGateway(home, env)
	t.equal(codeIn(second.errors()), undefined, 'the log no longer shows a code')
	t.equal(
		(await send(`${second.url}/v1/agents`, 'GET', { token: body.token })).status,
		200,
		'the token survives kill -9',
	)
	await second.end()
})
