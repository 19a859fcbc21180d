/** POST /v1/agents/{name}/webhooks/{slug}/test: a delivery that the gateway signs, and handles like any other. */
import t from 'tap'
import { addToken } from '../../support/add.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { assertError } from '../../support/error-response.ts'
import { follow } from '../../support/runs.ts'
import { deliver, makeHook } from './sender.ts'
import type { Hook } from './sender.ts'

const gateway = await startGateway({ config: 'webhooks: {max_body_kib: 1, per_minute: 12}\n' })
t.teardown(() => gateway.stop())

const logOf = async ({ path }: Hook): Promise<Answer[]> =>
	(await gateway.request('GET', `${path}/deliveries?limit=500`)).body

void t.test('a test starts a run, and is logged and counted as a delivery', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const hook = await makeHook(gateway, 'ada')
	const { status, body } = await gateway.request('POST', `${hook.path}/test`)
	t.equal(status, 200)
	t.strictSame(Object.keys(body).toSorted(), ['delivery_id', 'run_id', 'status'])
	t.equal(body.status, 'accepted')
	t.equal((await ada.ended(body.run_id)).event_type, 'run.completed')
	const run = await ada.read(body.run_id)
	t.match(run, { agent: 'ada', trigger: 'webhook', conversation: `webhook:${body.delivery_id}` })
	t.match(run.prompt, /\{"test":true,"webhook":"hook","sent_at":"2[^"]+Z"\}/)
	t.notOk(run.prompt.includes(hook.secret))

	const [logged, ...others] = await logOf(hook)
	t.strictSame(others, [])
	t.match(logged, { ...body, status: undefined, signature_valid: true, status_code: 200, error: null })
	t.equal(logged.source_ip, '127.0.0.1')
	const list = (await gateway.request('GET', '/v1/agents/ada/webhooks')).body
	t.match(list, [{ delivery_count: 1, last_delivery: logged.received_at }])
	const accepted = await ada.stream.waitFor('webhook.accepted')
	t.match(accepted.payload, { slug: 'hook', delivery_id: body.delivery_id, run_id: body.run_id })
})

void t.test('the payload may be any JSON, and each test is a separate delivery', async (t) => {
	const hook = await makeHook(gateway, 'eve')
	const runs = new Set<string>()
	const payloads = [{ event: 'deployed', n: [1.5, null] }, [], 'text', '', 0, false, null, null]
	for (const payload of payloads) {
		const { status, body } = await gateway.request('POST', `${hook.path}/test`, { body: { payload } })
		t.equal(status, 200, JSON.stringify(payload))
		const run = (await gateway.request('GET', `/v1/runs/${body.run_id}`)).body
		t.ok(run.prompt.includes(`\n${JSON.stringify(payload)}\n`), JSON.stringify(payload))
		runs.add(body.run_id)
	}
	t.equal(runs.size, payloads.length)
	for (const body of [{}, null]) t.equal((await gateway.request('POST', `${hook.path}/test`, { body })).status, 200)
})

void t.test('the limits of deliveries apply', async (t) => {
	const bob = await follow(t, gateway, 'bob')
	const hook = await makeHook(gateway, 'bob')
	const payload = 'x'.repeat(1_023)
	assertError(t, await gateway.request('POST', `${hook.path}/test`, { body: { payload } }), {
		status: 413,
		code: 'payload_too_large',
	})
	t.match((await bob.stream.waitFor('webhook.rejected')).payload, { code: 'payload_too_large', slug: 'hook' })
	t.equal((await gateway.request('POST', `${hook.path}/test`, { body: { payload: payload.slice(1) } })).status, 200)
	for (let n = 1; n < 12; n++) t.equal((await deliver(gateway, hook, { n })).status, 200)
	const full = await gateway.request('POST', `${hook.path}/test`)
	assertError(t, full, { status: 429, code: 'rate_limited' })
	t.match(full.headers.get('retry-after'), /^\d+$/)
	t.equal((await logOf(hook)).length, 12)
})

void t.test('an unknown webhook, an invalid body and a missing scope are refused', async (t) => {
	const hook = await makeHook(gateway, 'kim')
	const test = (agent: string, slug: string, options = {}) =>
		gateway.request('POST', `/v1/agents/${agent}/webhooks/${slug}/test`, options)
	assertError(t, await test('kim', 'other'), { status: 404, code: 'not_found' })
	t.match((await test('kim', 'other')).body.message, /no webhook "other"; it has hook/)
	assertError(t, await test('kim', '%2e%2e'), { status: 404, code: 'not_found' })
	assertError(t, await test('nobody', 'hook'), { status: 404, code: 'not_found' })
	assertError(t, await test('kim', 'hook', { body: { data: 1 } }), { status: 400, code: 'invalid_request' })
	assertError(t, await test('kim', 'hook', { body: '[1]' }), { status: 400, code: 'invalid_request' })
	assertError(t, await test('kim', 'hook', { body: '{"payload":' }), { status: 400, code: 'invalid_request' })
	const scopes = ['agents:read', 'runs:write']
	const { token } = await addToken(gateway, scopes)
	assertError(t, await test('kim', 'hook', { token }), { status: 403, code: 'forbidden' })
	t.strictSame(await logOf(hook), [])

	await gateway.request('DELETE', hook.path)
	assertError(t, await test('kim', 'hook'), { status: 404, code: 'not_found' })
})
