/** The resources Secret and Grant, the table "Vault" of the spec and the primitive vault.read, over HTTP. */
import { createHash } from 'node:crypto'
import { chmodSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { addToken } from '../support/add.ts'
import { makeHome, startGateway } from '../support/gateway.ts'
import type { Answer, Reply, RequestOptions, TestGateway } from '../support/gateway.ts'
import { assertError } from '../support/error-response.ts'
import { follow } from '../support/runs.ts'
import { openStream } from '../support/sse.ts'

/** A tool that replaces handles as skills and MCP tools do. It returns the digest of its arguments after that. */
const outpost = `import { createHash } from 'node:crypto'
const sha256 = (text) => createHash('sha256').update(text).digest('hex')
export default {
	name: 'outpost',
	needs: ['vault'],
	start(ctx) {
		ctx.primitive({
			name: 'outpost.call',
			description: 'Calls out.',
			parameters: { type: 'object' },
			run: async (args, { agent, emit }) => {
				const filled = await ctx.use('vault').fill(args, { agent, via: 'outpost', emit })
				return { digest: sha256(JSON.stringify(filled)) }
			},
		})
	},
}`

const gateway = await startGateway({
	config: 'plugins: { outpost: true }\n',
	files: { 'plugins/outpost/index.js': outpost },
})
t.teardown(() => gateway.stop())

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const VALUE = 'correct horse battery staple'

function call(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<Reply<Answer>> {
	return gateway.request(method, `/v1/vault/${path}`, { ...options, ...(body !== undefined && { body }) })
}

async function store(name: string, value = VALUE, fields: object = {}): Promise<Answer> {
	const { status, body } = await call('POST', 'secrets', { name, value, ...fields })
	if (status !== 201) throw new Error(`secret ${name}: ${status} ${JSON.stringify(body)}`)
	return body
}

async function grant(agent_id: string, secret_id: string, fields: object = {}): Promise<Answer> {
	const { status, body } = await call('POST', 'grants', { agent_id, secret_id, ...fields })
	if (status !== 201) throw new Error(`grant: ${status} ${JSON.stringify(body)}`)
	return body
}

async function createAgent(name: string): Promise<string> {
	await gateway.request('POST', '/v1/agents', { body: { name } })
	return name
}

async function listed(name: string): Promise<Answer> {
	return (await call('GET', 'secrets')).body.find((one: { name: string }) => one.name === name)
}

void t.test('storing a secret answers 201 with id, name and created_at, and never the value', async (t) => {
	const reply = await call('POST', 'secrets', { name: 'FIRST', value: VALUE })
	t.equal(reply.status, 201)
	const { id, created_at, ...rest } = reply.body
	t.strictSame(rest, { name: 'FIRST' })
	t.match(id, /^[0-9a-f-]{36}$/)
	t.match(created_at, ISO)
	t.strictSame(await listed('FIRST'), reply.body)
})

void t.test('the second form has key_name and policy_label', async (t) => {
	const second = await call('POST', 'secrets', { key_name: 'SECOND', value: VALUE, policy_label: 'channel' })
	t.equal(second.status, 201)
	t.match(second.body, { name: 'SECOND', policy_label: 'channel' })
	t.notOk('key_name' in second.body)
	t.strictSame(await listed('SECOND'), second.body)
	t.equal((await call('POST', 'secrets', { key_name: 'THIRD', value: VALUE })).status, 201)
	t.match(await store('FOURTH', VALUE, { policy_label: 'channel' }), { policy_label: 'channel' })
})

void t.test('every valid name and value is accepted', async (t) => {
	const names = ['x', 'a'.repeat(128), 'A-z_0.9', '__proto__', 'constructor', '.', '..', '-', '7']
	for (const name of names) {
		t.equal((await store(name)).name, name)
		assertError(t, await call('POST', 'secrets', { name, value: VALUE }), { status: 409, code: 'already_exists' }, name)
	}
	const values = ['é'.repeat(32 * 1024), 'a\0b', '-----BEGIN KEY-----\nx\n-----END KEY-----\n', '😀'.repeat(3)]
	const ada = await follow(t, gateway, 'sizes')
	for (const [at, value] of values.entries()) {
		const { id } = await store(`VALUE_${at}`, value)
		await grant('sizes', id)
		const run_id = await ada.complete(`/tool outpost.call {"v":"{{secret:VALUE_${at}}}"}`)
		const { payload } = await ada.waitFor(run_id, 'primitive.result')
		t.match(payload.result, digestOf({ v: value }), `value ${at} is unchanged`)
	}
})

void t.test('a value that will not be redacted is stored with a warning', async (t) => {
	for (const [name, value] of [
		['SHORT', 'x'],
		['SEVEN', '1234567'],
		['PADDED', '  1234567 \n'],
		['WORD', 'completed'],
	] as const) {
		t.match((await store(name, value)).warning, /not redacted/, name)
		const { id } = await listed(name)
		t.match((await call('PUT', `secrets/${id}`, { value })).body.warning, /not redacted/, name)
		t.notOk('warning' in (await call('PUT', `secrets/${id}`, { value: VALUE })).body)
	}
	t.notOk('warning' in (await store('EIGHT', '12345678')))
})

const CANARY = 'c4n4ry!'
const bad: [what: string, body: unknown, path: string, message: RegExp][] = [
	['a missing name', { value: CANARY }, '', /name is required/],
	['both names', { name: 'A', key_name: 'A', value: CANARY }, '', /either name or key_name, not both/],
	['an empty name', { name: '', value: CANARY }, 'name', /name/],
	['a long name', { name: 'a'.repeat(129), value: CANARY }, 'name', /name must be 1 to 128 of/],
	['a value as the name', { name: `${CANARY} ${CANARY}`, value: 'x' }, 'name', /name must be 1 to 128 of/],
	['a value as key_name', { key_name: `${CANARY} ${CANARY}`, value: 'x' }, 'key_name', /key_name must be 1 to 128 of/],
	['a name with braces', { name: 'a}}b', value: CANARY }, 'name', /name must be/],
	['a name with a line break', { name: 'a\n', value: CANARY }, 'name', /name must be/],
	['a number as the name', { name: 7, value: CANARY }, 'name', /name must be a string/],
	['a missing value', { name: 'A' }, 'value', /value is required/],
	['an empty value', { name: 'A', value: '' }, 'value', /value is not allowed to be empty/],
	['null', { name: 'A', value: null }, 'value', /value must be a string/],
	['a list', { name: 'A', value: [CANARY] }, 'value', /value must be a string/],
	['an object', { name: 'A', value: { CANARY } }, 'value', /value must be a string/],
	['a number', { name: 'A', value: 31337 }, 'value', /value must be a string/],
	['a value that is too long', { name: 'A', value: CANARY.repeat(10_000) }, 'value', /value .*at most 65536 bytes/],
	[
		'a value with too many bytes',
		{ name: 'A', value: `${'é'.repeat(32 * 1024)}x` },
		'value',
		/value .*at most 65536 bytes/,
	],
	['half a surrogate pair', { name: 'A', value: `${CANARY}\ud800` }, 'value', /value must be valid Unicode text/],
	[
		'a label with spaces',
		{ name: 'A', value: 'x', policy_label: `${CANARY} x` },
		'policy_label',
		/policy_label must be/,
	],
	['an empty label', { name: 'A', value: 'x', policy_label: '' }, 'policy_label', /policy_label/],
	['an unknown field', { name: 'A', value: 'x', note: CANARY }, 'note', /note is not allowed/],
	['a list as the body', [CANARY], '', /the body must be of type object/],
	['a string as the body', JSON.stringify(CANARY), '', /the body/],
]

void t.test('an invalid body is rejected, and the error does not repeat its values', async (t) => {
	for (const [what, body, path, message] of bad) {
		const reply = await call('POST', 'secrets', body)
		assertError(t, reply, { status: 400, code: 'invalid_request', path, message }, what)
		t.notOk(JSON.stringify(reply.body).includes(CANARY), `${what}: no value in the answer`)
	}
	for (const body of [
		'{"name":"A","value":"c4n4ry!","__proto__":{"x":1}}',
		'{"name":"A","value":{"__proto__":"c4n4ry!"}}',
		'{"name":"A","value":"c4n4ry!"',
		'c4n4ry!',
		'',
	]) {
		const reply = await call('POST', 'secrets', body)
		t.equal(reply.status, 400, body)
		t.notOk(JSON.stringify(reply.body).includes(CANARY), body)
	}
	t.equal(await listed('A'), undefined)
	const { id } = await store('PUT_BAD')
	for (const body of [
		{},
		{ value: 7 },
		{ value: '' },
		{ value: `${CANARY}\ud800` },
		{ value: CANARY, name: 'x' },
		[CANARY],
	]) {
		const reply = await call('PUT', `secrets/${id}`, body)
		assertError(t, reply, { status: 400, code: 'invalid_request' }, JSON.stringify(body))
		t.notOk(JSON.stringify(reply.body).includes(CANARY), JSON.stringify(body))
	}
})

void t.test('a name is unique, also among concurrent requests', async (t) => {
	const { id } = await store('TAKEN')
	const again = await call('POST', 'secrets', { key_name: 'TAKEN', value: VALUE })
	assertError(t, again, {
		status: 409,
		code: 'already_exists',
		message: new RegExp(`"TAKEN".*PUT /v1/vault/secrets/${id}`),
	})
	const race = await Promise.all(
		Array.from({ length: 20 }, (_, n) => call('POST', 'secrets', { name: 'RACE', value: `value ${n}` })),
	)
	for (const [status, times] of [
		[201, 1],
		[409, 19],
	])
		t.equal(race.filter((reply) => reply.status === status).length, times)
	await call('DELETE', `secrets/${id}`)
	t.not((await store('TAKEN')).id, id, 'a deleted name is free')
})

void t.test('an unknown secret or grant answers 404', async (t) => {
	const nowhere = '01890000-0000-7000-8000-000000000000'
	for (const id of [nowhere, 'NO_SUCH', '%F0%9F%98%80', '..%2fstate', 'toString', 'b'.repeat(128)]) {
		assertError(t, await call('DELETE', `secrets/${id}`), { status: 404, code: 'not_found' }, id)
		assertError(t, await call('PUT', `secrets/${id}`, { value: 'x' }), { status: 404, code: 'not_found' }, id)
		assertError(t, await call('DELETE', `grants/${id}`), { status: 404, code: 'not_found' }, id)
	}
	for (const id of ['a'.repeat(129), '%00', '%ED%A0%80'])
		for (const what of ['secrets', 'grants']) {
			const { status } = await call('DELETE', `${what}/${id}`)
			t.ok(status === 400 || status === 404, `${what}/${id}: ${status}`)
		}
})

void t.test('a grant answers 201 with grant_id, agent_id, secret_id and created_at', async (t) => {
	await createAgent('grantee')
	const { id } = await store('GRANTED')
	const reply = await call('POST', 'grants', { agent_id: 'grantee', secret_id: id })
	t.equal(reply.status, 201)
	const { grant_id, created_at, ...rest } = reply.body
	t.strictSame(rest, { agent_id: 'grantee', secret_id: id, reveal: false })
	t.match(created_at, ISO)
	t.strictSame((await call('GET', 'grants?agent_id=grantee')).body, [reply.body])
	const again = await call('POST', 'grants', { agent_id: 'grantee', secret_id: id, reveal: true })
	assertError(t, again, {
		status: 409,
		code: 'already_exists',
		message: new RegExp(`DELETE /v1/vault/grants/${grant_id}`),
	})

	t.match(await grant(await createAgent('by-name'), 'GRANTED', { reveal: true }), { secret_id: id, reveal: true })
	t.equal((await call('GET', 'grants')).body.filter((one: Answer) => one.secret_id === id).length, 2)
	t.strictSame((await call('GET', 'grants?agent_id=nobody')).body, [])

	const revoked = await call('DELETE', `grants/${grant_id}`)
	t.equal(revoked.status, 204)
	t.equal(revoked.body, '')
	t.strictSame((await call('GET', 'grants?agent_id=grantee')).body, [])
	assertError(t, await call('DELETE', `grants/${grant_id}`), { status: 404, code: 'not_found' })
	t.not((await grant('grantee', id)).grant_id, grant_id)
})

void t.test('an invalid grant is rejected', async (t) => {
	await createAgent('wrongly')
	const { id } = await store('WRONGLY')
	const cases: [body: unknown, status: number, path: string | undefined, message: RegExp][] = [
		[{ agent_id: 'wrongly' }, 400, 'secret_id', /secret_id is required/],
		[{ secret_id: id }, 400, 'agent_id', /agent_id is required/],
		[{ agent_id: 'wrongly', secret_id: '' }, 400, 'secret_id', /secret_id/],
		[{ agent_id: 'wrongly', secret_id: 'x'.repeat(129) }, 400, 'secret_id', /128/],
		[{ agent_id: 'wrongly', secret_id: 7 }, 400, 'secret_id', /secret_id must be a string/],
		[{ agent_id: 'a b', secret_id: id }, 400, 'agent_id', /agent_id must be the name of an agent/],
		[{ agent_id: '\ud800', secret_id: id }, 400, 'agent_id', /agent_id must be/],
		[{ agent_id: 'wrongly', secret_id: id, reveal: 'yes' }, 400, 'reveal', /reveal must be a boolean/],
		[{ agent_id: 'wrongly', secret_id: id, note: 1 }, 400, 'note', /note is not allowed/],
		[{ agent_id: 'nobody', secret_id: id }, 404, undefined, /no agent "nobody"/],
		[{ agent_id: 'wrongly', secret_id: 'NOTHING' }, 404, undefined, /no secret "NOTHING"/],
		[{ agent_id: 'wrongly', secret_id: 'a\ud800' }, 404, undefined, /no secret/],
		[{ agent_id: 'wrongly', secret_id: '__proto__ ' }, 404, undefined, /no secret/],
	]
	for (const [body, status, path, message] of cases) {
		const code = status === 400 ? 'invalid_request' : 'not_found'
		assertError(
			t,
			await call('POST', 'grants', body),
			{ status, code, message, ...(path && { path }) },
			JSON.stringify(body),
		)
	}
	t.strictSame((await call('GET', 'grants?agent_id=wrongly')).body, [])
	assertError(t, await call('GET', 'grants?agent_id=a%20b'), { status: 400, code: 'invalid_request', path: 'agent_id' })
	assertError(t, await call('GET', 'grants?nonsense=1'), { status: 400, code: 'invalid_request', path: 'nonsense' })
})

void t.test('deleting a secret or an agent deletes its grants', async (t) => {
	for (const name of ['one', 'two']) await createAgent(name)
	const [a, b] = [await store('GONE_A'), await store('GONE_B')]
	for (const name of ['one', 'two']) for (const { id } of [a, b]) await grant(name, id)
	const reply = await call('DELETE', `secrets/${a.id}`)
	t.equal(reply.status, 204)
	t.equal(reply.body, '')
	const left = async (): Promise<string[]> =>
		(await call('GET', 'grants')).body
			.filter((one: Answer) => [a.id, b.id].includes(one.secret_id))
			.map((one: Answer) => `${one.agent_id} ${one.secret_id}`)
	t.strictSame(await left(), [`one ${b.id}`, `two ${b.id}`])
	await gateway.request('DELETE', '/v1/agents/one')
	t.strictSame(await left(), [`two ${b.id}`])
	await createAgent('one')
	t.strictSame(await left(), [`two ${b.id}`], 'a new agent with that name has none')
})

void t.test('vault.read with a grant returns a handle and emits vault.accessed', async (t) => {
	const ada = await follow(t, gateway, 'reader')
	const { id } = await store('READ_ME', 'the value of READ_ME')
	const { grant_id } = await grant('reader', id)
	const run_id = await ada.complete('/tool vault.read {"name":"READ_ME"}')
	t.strictSame((await ada.waitFor(run_id, 'vault.accessed')).payload, {
		secret: 'READ_ME',
		secret_id: id,
		grant_id,
		via: 'vault.read',
	})
	const { payload } = await ada.waitFor(run_id, 'primitive.result')
	const result = JSON.parse(String(payload.result))
	t.strictSame(Object.keys(result), ['name', 'handle', 'use'])
	t.equal(result.handle, '{{secret:READ_ME}}')
	t.match(result.use, /gateway replaces it by the value/)

	const calling = await ada.complete(
		'/tool outpost.call {"url":"https://example.com/?key={{secret:READ_ME}}","list":["{{secret:READ_ME}}"]}',
	)
	const value = 'the value of READ_ME'
	const sent = { url: `https://example.com/?key=${value}`, list: [value] }
	t.match((await ada.waitFor(calling, 'primitive.result')).payload.result, digestOf(sent))
	t.match((await ada.waitFor(calling, 'vault.accessed')).payload, { secret: 'READ_ME', via: 'outpost' })
	t.match((await ada.waitFor(calling, 'primitive.called')).payload.arguments, '{{secret:READ_ME}}')
	t.notMatch(JSON.stringify(ada.stream.events), value)
	t.notMatch(JSON.stringify((await gateway.request('GET', '/v1/audit?limit=500')).body), value)
})

void t.test('without a grant the agent gets an error, and vault.denied is emitted', async (t) => {
	const ada = await follow(t, gateway, 'stranger')
	const { id } = await store('NOT_YOURS', 'the value of NOT_YOURS')
	await grant(await createAgent('somebody-else'), id)
	for (const name of ['NOT_YOURS', 'NO_SUCH', 'no name at all', id]) {
		const run_id = await ada.complete(`/tool vault.read {"name":"${name}"}`)
		t.strictSame((await ada.waitFor(run_id, 'vault.denied')).payload, { secret: name, via: 'vault.read' })
		const { payload } = await ada.waitFor(run_id, 'primitive.failed')
		t.match(payload, { primitive: 'vault.read', code: 'vault_denied', message: /POST \/v1\/vault\/grants/ }, name)
		t.notOk(ada.typesOf(run_id).includes('vault.accessed'))
	}
	const filling = await ada.complete('/tool outpost.call {"a":"{{secret:NOT_YOURS}}"}')
	t.match((await ada.waitFor(filling, 'vault.denied')).payload, { secret: 'NOT_YOURS', via: 'outpost' })
	t.match((await ada.waitFor(filling, 'primitive.failed')).payload, { code: 'vault_denied' })
	t.notMatch(JSON.stringify(ada.stream.events), 'the value of')

	const { grant_id } = await grant('stranger', id)
	await ada.complete('/tool vault.read {"name":"NOT_YOURS"}')
	await call('DELETE', `grants/${grant_id}`)
	const after = await ada.complete('/tool vault.read {"name":"NOT_YOURS"}')
	t.ok(ada.typesOf(after).includes('vault.denied'), 'a revoked grant is no longer valid')
})

void t.test('invalid arguments of vault.read are reported to the model', async (t) => {
	const ada = await follow(t, gateway, 'clumsy')
	for (const args of ['{}', '{"name":7}', '{"name":""}', '{"name":"A","more":1}', `{"name":"${'x'.repeat(129)}"}`]) {
		const run_id = await ada.complete(`/tool vault.read ${args}`)
		t.match((await ada.waitFor(run_id, 'primitive.failed')).payload, { code: 'invalid_arguments' }, args)
	}
})

void t.test('a secret can be replaced and deleted by its name', async (t) => {
	const made = await store('BY_NAME', 'the first value')
	const reply = await call('PUT', 'secrets/BY_NAME', { value: 'the second value' })
	t.equal(reply.status, 200)
	t.strictSame(reply.body, made)
	t.equal((await call('DELETE', 'secrets/BY_NAME')).status, 204)
	t.equal(await listed('BY_NAME'), undefined)
	t.equal((await call('DELETE', 'secrets/BY_NAME')).status, 404)
})

void t.test('a secret with a new value keeps its grants', async (t) => {
	const ada = await follow(t, gateway, 'keeper')
	const made = await store('ROTATED', 'the first value')
	await grant('keeper', made.id)
	const stream = await openStream(gateway.url, { query: { event_type: 'vault.*' } })
	t.teardown(() => stream.close())
	const reply = await call('PUT', `secrets/${made.id}`, { value: 'the second value' })
	t.equal(reply.status, 200)
	t.strictSame(reply.body, made)
	t.strictSame(await listed('ROTATED'), made)
	t.match((await stream.waitFor('vault.secret_updated')).payload, { secret_id: made.id, name: 'ROTATED', version: 2 })
	const run_id = await ada.complete('/tool outpost.call {"v":"{{secret:ROTATED}}"}')
	t.match((await ada.waitFor(run_id, 'primitive.result')).payload.result, digestOf({ v: 'the second value' }))
})

void t.test('changes of the vault emit events without values', async (t) => {
	await createAgent('watched')
	const stream = await openStream(gateway.url, { query: { event_type: 'vault.*' } })
	t.teardown(() => stream.close())
	const { id } = await store('WATCHED', 'a value that is not in events', { policy_label: 'channel' })
	const first = await grant('watched', id)
	await call('DELETE', `grants/${first.grant_id}`)
	await grant('watched', id, { reveal: true })
	await call('DELETE', `secrets/${id}`)
	await stream.waitFor('vault.secret_deleted')
	const events = stream.events.filter((event) => event.payload.secret_id === id)
	t.match(events, [
		{ event_type: 'vault.secret_created', agent_id: null, payload: { name: 'WATCHED', policy_label: 'channel' } },
		{ event_type: 'vault.granted', agent_id: 'watched', payload: { grant_id: first.grant_id, secret: 'WATCHED' } },
		{ event_type: 'vault.revoked', agent_id: 'watched', payload: { grant_id: first.grant_id } },
		{ event_type: 'vault.granted', agent_id: 'watched', payload: { reveal: true } },
		{ event_type: 'vault.secret_deleted', agent_id: null, payload: { name: 'WATCHED', grants: 1 } },
	])
	t.equal(events.length, 5)
	t.notMatch(JSON.stringify(events), 'not in events')
})

void t.test('listing secrets requires vault:read, everything else vault:write', async (t) => {
	const own = await startGateway({ env: { SVC_LOOPBACK: 'off' } })
	t.teardown(() => own.stop())
	const admin = (await addToken(own, ['*'])).token
	const tokenFor = async (...scopes: string[]): Promise<string> => (await addToken(own, scopes, { by: admin })).token
	const [reads, writes, others] = [
		await tokenFor('vault:read'),
		await tokenFor('vault:write'),
		await tokenFor('agents:read', 'agents:write', 'runs:write', 'events:read', 'tokens:admin', 'channels:write'),
	]
	const { id } = (await own.request('POST', '/v1/vault/secrets', { body: { name: 'A', value: VALUE }, token: writes }))
		.body
	t.ok(id)
	await own.request('POST', '/v1/agents', { body: { name: 'ada' }, token: admin })
	const routes: [method: string, path: string, scope: string, body?: object][] = [
		['GET', 'secrets', 'vault:read'],
		['POST', 'secrets', 'vault:write', { name: 'B', value: VALUE }],
		['PUT', `secrets/${id}`, 'vault:write', { value: VALUE }],
		['POST', 'grants', 'vault:write', { agent_id: 'ada', secret_id: id }],
		['GET', 'grants', 'vault:write'],
		['DELETE', 'grants/none', 'vault:write'],
		['POST', 'rotate-key', 'vault:write'],
		['POST', 'reset', 'vault:write'],
		['DELETE', `secrets/${id}`, 'vault:write'],
	]
	for (const [method, path, scope, body] of routes) {
		const send = (token?: string) =>
			own.request(method, `/v1/vault/${path}`, { ...(body && { body }), ...(token && { token }) })
		const about = `${method} ${path}`
		assertError(t, await send(), { status: 401, code: 'unauthorized' }, about)
		const [right, wrong] = scope === 'vault:read' ? [reads, writes] : [writes, reads]
		for (const token of [wrong, others])
			assertError(t, await send(token), { status: 403, code: 'forbidden', message: new RegExp(scope) }, about)
		t.ok([200, 201, 204, 404, 409].includes((await send(right)).status), about)
	}
})

void t.test('secrets, grants and redaction survive a restart', async (t) => {
	const home = makeHome()
	let own: TestGateway = await startGateway({ home })
	t.teardown(() => own.stop())
	const { id } = (await own.request('POST', '/v1/vault/secrets', { body: { name: 'KEPT', value: VALUE } })).body
	await own.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const made = await own.request('POST', '/v1/vault/grants', { body: { agent_id: 'ada', secret_id: id } })
	const ada = await follow(t, own, 'ada')
	await ada.complete('/tool vault.read {"name":"KEPT"}')
	await own.stop()
	for (const file of readdirSync(join(home, 'data'), { recursive: true, withFileTypes: true })) {
		if (!file.isFile()) continue
		const path = join(file.parentPath, file.name)
		t.notOk(readFileSync(path).includes(VALUE), `${path} does not contain the value`)
	}
	const modes = (): number[] => ['keys', 'keys/vault.key'].map((path) => statSync(join(home, path)).mode & 0o777)
	const isUnix = process.platform !== 'win32'
	if (isUnix) t.strictSame(modes(), [0o700, 0o600])
	chmodSync(join(home, 'keys/vault.key'), 0o644)

	own = await startGateway({ home })
	if (isUnix) t.strictSame(modes(), [0o700, 0o600], 'the permissions are restored')
	t.strictSame((await own.request('GET', '/v1/vault/grants')).body, [made.body])
	const again = await follow(t, own, 'ada')
	const run_id = await again.complete(`Is it ${VALUE}?`)
	t.match((await again.waitFor(run_id, 'message.user')).payload.content, 'Is it [redacted:KEPT]?')
	const reading = await again.complete('/tool vault.read {"name":"KEPT"}')
	t.ok(again.typesOf(reading).includes('vault.accessed'))
	t.equal((await own.request('DELETE', `/v1/vault/grants/${made.body.grant_id}`)).status, 204)
	await own.stop()

	own = await startGateway({ home })
	const without = await follow(t, own, 'ada')
	const last = await without.complete(`Is it still ${VALUE}?`)
	const redacted = 'Is it still [redacted:KEPT]?'
	t.match((await without.waitFor(last, 'message.user')).payload.content, redacted, 'also without the grant')
})

void t.test('without its key the vault is locked, and everything else works', async (t) => {
	const home = makeHome()
	let own: TestGateway = await startGateway({ home })
	t.teardown(() => own.stop())
	const { id } = (await own.request('POST', '/v1/vault/secrets', { body: { name: 'KEY', value: VALUE } })).body
	await own.request('POST', '/v1/agents', { body: { name: 'ada' } })
	await own.request('POST', '/v1/vault/grants', { body: { agent_id: 'ada', secret_id: id } })
	await own.stop()

	own = await startGateway({ home, env: { SVC_VAULT_KEY: 'ab'.repeat(32) } })
	const message = /the vault is locked: .*a different key than that in SVC_VAULT_KEY.*SVC_VAULT_KEY_OLD/
	const locked = { status: 503, code: 'vault_locked', message }
	for (const [method, path, body] of [
		['GET', 'secrets'],
		['POST', 'secrets', { name: 'B', value: VALUE }],
		['PUT', `secrets/${id}`, { value: VALUE }],
		['POST', 'grants', { agent_id: 'ada', secret_id: id }],
		['GET', 'grants'],
		['POST', 'rotate-key'],
		['DELETE', `secrets/${id}`],
	] as const)
		assertError(t, await own.request(method, `/v1/vault/${path}`, body ? { body } : {}), locked, `${method} ${path}`)
	const plugin = (await own.request('GET', '/v1/plugins')).body.find((one: Answer) => one.name === 'vault')
	t.match(plugin, { state: 'running', last_error: message })
	t.match((await own.request('GET', '/readyz?verbose')).body, /\[-\]plugins .*problems with vault/)
	const ada = await follow(t, own, 'ada')
	await ada.complete('Hello.')
	const run_id = await ada.complete('/tool vault.read {"name":"KEY"}')
	t.match((await ada.waitFor(run_id, 'primitive.failed')).payload, { code: 'vault_locked', message })
	await own.stop()

	own = await startGateway({ home })
	t.equal((await own.request('GET', '/v1/vault/secrets')).body.length, 1)
	const lastError = async () =>
		(await own.request('GET', '/v1/plugins')).body.find((one: Answer) => one.name === 'vault').last_error
	t.equal(await lastError(), null)
	assertError(t, await own.request('POST', '/v1/vault/reset'), { status: 409, code: 'conflict', message: /not locked/ })
	t.equal((await own.request('GET', '/v1/vault/secrets')).body.length, 1, 'nothing is deleted')
	await own.stop()

	// The key is lost.
	const file = join(home, 'keys/vault.key')
	rmSync(file)
	own = await startGateway({ home })
	assertError(t, await own.request('GET', '/v1/vault/secrets'), { ...locked, message: /key of the vault is missing/ })
	const reset = await own.request('POST', '/v1/vault/reset')
	t.strictSame([reset.status, reset.body], [200, { status: 'reset', secrets: 1 }])
	t.equal(await lastError(), null)
	t.strictSame((await own.request('GET', '/v1/vault/secrets')).body, [])
	t.strictSame((await own.request('GET', '/v1/vault/grants')).body, [])
	t.match((await own.request('GET', '/v1/audit?event_type=vault.reset')).body.events, [{ payload: { secrets: 1 } }])
	t.equal((await own.request('POST', '/v1/vault/secrets', { body: { name: 'KEY', value: VALUE } })).status, 201)
	await own.stop()

	own = await startGateway({ home })
	t.equal((await own.request('GET', '/v1/vault/secrets')).body.length, 1, 'the next start uses the new key')
})

void t.test('the key is rotated while the gateway runs', async (t) => {
	const ada = await follow(t, gateway, 'rotating')
	const { id } = await store('UNDER_NEW_KEY')
	await grant('rotating', id)
	const before = (await call('GET', 'secrets')).body.length
	const reply = await call('POST', 'rotate-key')
	t.strictSame([reply.status, reply.body], [200, { status: 'rotated', secrets: before }])
	const run_id = await ada.complete('/tool outpost.call {"v":"{{secret:UNDER_NEW_KEY}}"}')
	t.match((await ada.waitFor(run_id, 'primitive.result')).payload.result, digestOf({ v: VALUE }))
	const { events } = (await gateway.request('GET', '/v1/audit?event_type=vault.key_rotated')).body
	t.match(events, [{ payload: { secrets: before } }])
})

function digestOf(data: unknown): string {
	return createHash('sha256').update(JSON.stringify(data)).digest('hex')
}
