/** `svc.fetch` and `svc.secret`, outside the isolate of the program: with a real vault, and a local server that replaces the internet. */
import t from 'tap'
import type { Test } from 'tap'
import { isFault } from '../../../core/errors.ts'
import { guardedFetch } from '../../../core/fetch/guarded-fetch.ts'
import type { NewEvent } from '../../../core/protocol.ts'
import { callHandler } from '../../../plugins/skills/call-handler.ts'
import { startGateway } from '../../support/gateway.ts'
import { contextProbe } from '../../support/context-probe.ts'
import { startFakeInternet } from '../../support/fake-internet.ts'
import type { FakeResponse, FakeInternet } from '../../support/fake-internet.ts'

const { files, context } = contextProbe()
const gateway = await startGateway({ config: 'plugins: {probe: true}\n', files })
t.teardown(() => gateway.stop())
const lent = context()

await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
const agent = await lent.use('agents').get('ada')
for (const [name, value] of Object.entries({
	KEY: 'the value & of =KEY',
	OTHER: 'the value of OTHER',
	BOUND: 'the value of BOUND',
	NONE: 'not granted',
})) {
	const { id } = (await gateway.request('POST', '/v1/vault/secrets', { body: { name, value } })).body
	const hosts = name === 'BOUND' ? { hosts: ['api.example.com'] } : {}
	const body = { agent_id: 'ada', secret_id: id, ...hosts }
	if (name !== 'NONE') await gateway.request('POST', '/v1/vault/grants', { body })
}

interface Program {
	fetch(
		url: unknown,
		init?: unknown,
	): Promise<{ status: number; url: string; headers: Record<string, string>; body: string }>
	secret(name: unknown): Promise<unknown>
	events: NewEvent[]
}

function programWith(send?: typeof guardedFetch): Program {
	const events: NewEvent[] = []
	const call = { run_id: 'run', agent, key: 'run:call', emit: (event: NewEvent) => void events.push(event) }
	const permissions = {
		primitives: [],
		hosts: ['api.example.com', 'next.example.com:8443'],
		secrets: ['KEY', 'NONE', 'LINES', 'BOUND'],
	}
	const handle = callHandler(lent, { skill: 's', skill_id: 'id', permissions, call: call as never }, send)
	const { signal } = new AbortController()
	return {
		fetch: (url, init) => handle('fetch', { url, init }, signal) as ReturnType<Program['fetch']>,
		secret: (name) => handle('secret', { name }, signal),
		events,
	}
}

async function fails(t: Test, promise: Promise<unknown>, code: string, about: string): Promise<void> {
	const error: unknown = await promise.then(
		() => undefined,
		(thrown: unknown) => thrown,
	)
	t.ok(isFault(error), about)
	t.equal((error as { code?: string } | undefined)?.code, code, `${about}: ${String(error)}`)
}

async function online(t: Test, answer: (url: URL) => FakeResponse = () => ({})): Promise<Program & FakeInternet> {
	const standIn = await startFakeInternet(t, ({ url }) => answer(new URL(url)))
	return { ...standIn, ...programWith(standIn.send) }
}

void t.test('a request and its response arrive unchanged', async (t) => {
	const response = { status: 418, headers: { 'x-more': 'yes' }, body: 'täxt' }
	const { fetch, arrived } = await online(t, () => response)
	const url = 'https://api.example.com/a/b?c=d%20e&f'
	const answer = await fetch(url, { method: 'PUT', headers: { 'X-One': '1', 'content-type': 'text/csv' }, body: 'ä,b' })
	t.match(answer, { status: 418, headers: { 'x-more': 'yes' }, body: 'täxt' })
	t.match(arrived, [{ method: 'PUT', url, headers: { 'x-one': '1', 'content-type': 'text/csv' }, body: 'ä,b' }])
	await fetch('https://next.example.com:8443/', { headers: [['a', 'b']] })
	t.match(arrived[1], { method: 'GET', headers: { a: 'b' } })
})

void t.test('a handle of a declared and granted secret is replaced in headers, query and body only', async (t) => {
	const { fetch, arrived, events } = await online(t)
	const url = 'https://api.example.com/x?a=b+c&key={{secret:KEY}}'
	const answer = await fetch(url, {
		method: 'POST',
		headers: { authorization: 'Bearer {{secret:KEY}}' },
		body: '{"key": "{{secret:KEY}}", "again": "{{secret:KEY}}"}',
	})
	t.match(arrived[0], {
		url: 'https://api.example.com/x?a=b+c&key=the+value+%26+of+%3DKEY',
		headers: { authorization: 'Bearer the value & of =KEY' },
		body: '{"key": "the value & of =KEY", "again": "the value & of =KEY"}',
	})
	t.notMatch(answer.url, /value/, 'the program does not get the value')
	t.match(events, [{ event_type: 'vault.accessed' }])

	await fetch('https://api.example.com/{{secret:KEY}}/')
	t.match(arrived[1]?.url, 'https://api.example.com/%7B%7Bsecret:KEY%7D%7D/', 'a path is sent as it is')
	await fails(t, fetch('https://{{secret:KEY}}.example.com/'), 'invalid_request', 'not in a host')
	t.equal(arrived.length, 2)
})

void t.test('a handle of any other secret prevents the request', async (t) => {
	const { fetch, arrived, events, secret } = await online(t)
	const init = (name: string): object => ({ headers: { a: `{{secret:${name}}}` } })
	await fails(t, fetch('https://api.example.com/', init('OTHER')), 'permission_denied', 'granted, not declared')
	await fails(t, fetch('https://api.example.com/', init('NONE')), 'vault_denied', 'declared, not granted')
	await fails(t, fetch('https://api.example.com/?q={{secret:OTHER}}'), 'permission_denied', 'in the query')
	await fails(t, fetch('https://api.example.com/?q=%7B%7Bsecret:OTHER%7D%7D'), 'permission_denied', 'encoded')
	await fails(t, secret('OTHER'), 'permission_denied', 'svc.secret, not declared')
	await fails(t, secret('NONE'), 'vault_denied', 'svc.secret, not granted')
	t.equal(await secret('KEY'), 'the value & of =KEY')
	t.strictSame(arrived, [])
	const types = events.map(({ event_type, payload }) => `${event_type} ${String(payload.what ?? '')}`.trim())
	t.strictSame(
		types.filter((type) => type.startsWith('security.')),
		['security.violation secrets: OTHER'],
		'reported once',
	)
})

void t.test('a secret whose grant names hosts is sent to these only, also after a redirect', async (t) => {
	const location = 'https://next.example.com:8443/'
	const { fetch, arrived, events, secret } = await online(t, ({ searchParams }) =>
		searchParams.has('redirect') ? { status: 307, headers: { location } } : {},
	)
	const init = { method: 'POST', headers: { a: '{{secret:BOUND}}' }, body: '{{secret:BOUND}}' }
	await fetch('https://api.example.com/', init)
	t.match(arrived, [{ headers: { a: 'the value of BOUND' }, body: 'the value of BOUND' }])
	for (const options of [init, { headers: { a: '{{secret:KEY}} {{secret:BOUND}}' } }])
		await fails(t, fetch('https://next.example.com:8443/', options), 'vault_denied', 'a declared host')
	await fails(t, fetch('https://next.example.com:8443/?q={{secret:BOUND}}'), 'vault_denied', 'in the query')
	t.equal(arrived.length, 1)
	await t.rejects(fetch('https://api.example.com/?redirect', init), {
		code: 'address_refused',
		message: /redirects to an address that is refused: a secret in this request has a grant for other hosts/,
	})
	await fails(t, secret('BOUND'), 'vault_denied', 'svc.secret')
	t.match(
		events.filter(({ event_type }) => event_type === 'vault.denied').map(({ payload }) => payload.reason),
		['hosts', 'hosts', 'hosts', 'hosts'],
	)
})

void t.test('hosts that are not declared get no request, also after a redirect', async (t) => {
	const targets = ['https://evil.example/', 'http://evil.example/', 'http://10.0.0.1/', 'http://localhost/']
	const { fetch, arrived, events } = await online(t, ({ searchParams }) => ({
		status: 302,
		headers: { location: targets[Number(searchParams.get('to'))] ?? '' },
	}))
	for (const to of targets.keys())
		await fails(t, fetch(`https://api.example.com/?to=${to}`), 'address_refused', targets[to] ?? '')
	t.equal(arrived.length, targets.length)
	for (const url of [
		'https://evil.example/',
		'https://api.example.com.evil.example/',
		'https://api.example.com@evil.example/',
		'https://next.example.com/',
		'https://sub.api.example.com/',
		'https://api.example.com./',
	])
		await fails(t, fetch(url), 'permission_denied', url)
	t.equal(arrived.length, targets.length)
	t.ok(events.every(({ event_type, payload }) => event_type === 'security.violation' && payload.skill === 's'))
})

void t.test('a declared host that resolves to a private address is refused', async (t) => {
	for (const address of ['127.0.0.1', '10.1.2.3', '169.254.169.254', '::1']) {
		const lookup = async (): Promise<{ address: string; family: number }[]> => [
			{ address, family: address.includes(':') ? 6 : 4 },
		]
		const { fetch, events } = programWith((url, init, options) => guardedFetch(url, init, { ...options, lookup }))
		await fails(t, fetch('https://api.example.com/'), 'address_refused', address)
		t.match(events, [
			{ event_type: 'security.violation', payload: { reason: 'address_refused', what: 'api.example.com' } },
		])
	}
	const { fetch } = programWith()
	await fails(t, fetch('http://api.example.com/'), 'address_refused', 'http')
})

void t.test('requests and responses have size limits', async (t) => {
	const { fetch, arrived } = await online(t, () => ({ body: 'x'.repeat(1024 * 1024 + 1) }))
	await fails(t, fetch('https://api.example.com/'), 'fetch_too_large', 'a response')
	const post = (body: unknown): Promise<unknown> => fetch('https://api.example.com/', { method: 'POST', body })
	await fails(t, post('x'.repeat(1024 * 1024 + 1)), 'payload_too_large', 'a body')
	await fails(t, fetch(`https://api.example.com/${'x'.repeat(9_000)}`), 'invalid_request', 'an address')
	t.equal(arrived.length, 1)
})

void t.test('an invalid call is refused', async (t) => {
	const { fetch, secret, arrived } = await online(t)
	const at = 'https://api.example.com/'
	for (const init of [
		{ method: 5 },
		{ body: { a: 1 } },
		{ headers: { a: {} } },
		{ headers: [['a']] },
		{ headers: [5] },
	])
		await fails(t, fetch(at, init), 'invalid_request', JSON.stringify(init))
	for (const init of [
		{ method: 'GET', body: 'x' },
		{ method: 'a b' },
		{ headers: { 'a b': 'c' } },
		{ headers: { a: 'b\r\nc: d' } },
	])
		await fails(t, fetch(at, init), 'invalid_request', JSON.stringify(init))
	for (const url of ['', 'nonsense', 5, null, {}]) await fails(t, fetch(url), 'invalid_request', JSON.stringify(url))
	for (const name of ['', 5, null]) await fails(t, secret(name), 'invalid_request', JSON.stringify(name))
	const { id } = (
		await gateway.request('POST', '/v1/vault/secrets', { body: { name: 'LINES', value: 'two\nlines of it' } })
	).body
	await gateway.request('POST', '/v1/vault/grants', { body: { agent_id: 'ada', secret_id: id } })
	const unfit = fetch(at, { headers: { a: '{{secret:LINES}}' } })
	await t.rejects(
		unfit,
		{ code: 'invalid_request', message: /^(?!.*lines of it)/s },
		'a value that is not valid in a header',
	)
	t.strictSame(arrived, [])
	await fetch(at, 'nonsense')
	t.equal(arrived.length, 1, 'an init that is not an object is ignored')
})

void t.test('one call cannot flood the log with violations', async (t) => {
	const { fetch, events } = programWith()
	for (let n = 0; n < 50; n++) await fails(t, fetch(`https://host-${n}.example/`), 'permission_denied', 'a host')
	t.equal(events.length, 20)
})
