/** `runs.keep_requests`: requests to models as they were sent, without secrets, and how they are deleted. */
import t from 'tap'
import type { Context } from '../../../core/plugin.ts'
import type { RunRecord, RunSettings } from '../../../plugins/runs/contract.ts'
import { keys } from '../../../plugins/runs/keys.ts'
import { tidy } from '../../../plugins/runs/maintenance.ts'
import { svcFor } from '../../support/cli.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { startModelServer } from '../../support/model-server.ts'
import { refused } from '../../support/refused.ts'
import { follow } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'

const DAY_MS = 24 * 3_600_000
const world = globalThis as { lent?: Context }
const model = await startModelServer()
const gateway = await startGateway({
	config: `providers:\n  mock: { kind: openai, base_url: '${model.url}', api_key: key-of-mock, model: m }\ndefault_provider: mock\nruns: { keep_requests: 2 }\nplugins: { lender: true }\n`,
	files: { 'plugins/lender/index.js': "export default { name: 'lender', start: (ctx) => { globalThis.lent = ctx } }" },
})
t.teardown(() => gateway.stop())
t.teardown(() => model.stop())
const { store } = world.lent as Context

/** Once so many are kept: a run does not wait for that. */
async function requestsOf(run_id: string, step: number, many = 1): Promise<Answer[]> {
	return eventually(
		async () => (await gateway.request('GET', `/v1/runs/${run_id}/steps/${step}/requests`)).body.requests,
		(requests: Answer[]) => requests.length >= many,
	)
}

async function left(run_id: string, uid: string): Promise<number> {
	const lists = [store.list(keys.requests(uid, run_id)), store.list(keys.requestBodies(uid, run_id))]
	return (await Promise.all(lists.map((list) => Array.fromAsync(list)))).flat().length
}

async function uidOf(run_id: string): Promise<string> {
	return ((await (world.lent as Context).use('runs').get(run_id)) as RunRecord).agent_uid
}

/** Without what the server adds to its record. */
const only = ({ model: name, messages, tools }: Answer): object => ({ name, messages, tools })

void t.test('each request is kept as it was sent, by the model answer that it asked for', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	model.on('look', { tools: [{ name: 'memory_stm_read', arguments: {} }] }, { status: 503 }, 'Done.')
	const run_id = await ada.complete('look')
	const [first] = await requestsOf(run_id, 1)
	const [failed, last, ...more] = await requestsOf(run_id, 2, 2)
	t.strictSame(more, [])
	t.strictSame(
		[first, failed, last].map(({ body }) => only(JSON.parse(body))),
		model.requests('look').map(only),
	)
	t.match(first, { provider: 'mock', model: 'm', truncated: false, size: first.body.length })
	t.notOk(JSON.stringify([first, failed, last]).includes('key-of-mock'))
	t.strictSame((await gateway.request('GET', `/v1/runs/${run_id}/steps/3/requests`)).body.requests, [])

	const shown = await svcFor(gateway)(['runs', 'steps', run_id, '--requests'])
	t.equal(shown.stdout.split('"model":"m"').length, 4)
	const list = (await svcFor(gateway)(['runs', 'steps', run_id, '--requests', '--json'])).json()
	t.strictSame(
		list.map(({ step }: Answer) => step),
		[1, 2, 2],
	)
})

void t.test('they need a scope of their own', async (t) => {
	const bob = await follow(t, gateway, 'bob')
	model.on('scope', 'Done.')
	const run_id = await bob.complete('scope')
	const path = `/v1/runs/${run_id}/steps/1/requests`
	const tokenFor = async (scope: string): Promise<string> =>
		(await gateway.request('POST', '/v1/auth/tokens', { body: { scopes: [scope] } })).body.token
	refused(t, await gateway.request('GET', path, { token: await tokenFor('agents:read') }), {
		status: 403,
		code: 'forbidden',
	})
	t.equal((await gateway.request('GET', path, { token: await tokenFor('requests:read') })).status, 200)
	refused(t, await gateway.request('GET', '/v1/runs/none/steps/1/requests'), { status: 404, code: 'not_found' })
	refused(t, await gateway.request('GET', `/v1/runs/${run_id}/steps/0/requests`), {
		status: 400,
		code: 'invalid_request',
	})
})

void t.test('no secret is kept, however JSON writes it, and a long request is cut', async (t) => {
	const cid = await follow(t, gateway, 'cid', { config: { context_window: 4_000_000, context: { tokens: 3_000_000 } } })
	const value = 'sk-"quoted"-\\secret-0123456789'
	const secret = await gateway.request('POST', '/v1/vault/secrets', { body: { name: 'KEY', value } })
	const grant = { secret_id: secret.body.id, agent_id: 'cid', reveal: true }
	await gateway.request('POST', '/v1/vault/grants', { body: grant })
	model.on('read', { tools: [{ name: 'vault_read', arguments: { name: 'KEY' } }] }, 'Done.')
	const run_id = await cid.complete('read')
	t.ok(JSON.stringify(model.requests('read').at(-1)).includes('quoted'), 'the model got it')
	const [request] = await requestsOf(run_id, 2)
	t.notOk(request.body.includes('quoted'))
	t.ok(request.body.includes('[redacted'))

	for (let at = 0; at < 14; at++) {
		model.on(`part ${at}.`, 'x')
		await cid.complete(`part ${at}. ${'y'.repeat(90_000)}`)
	}
	model.on('the end', 'Done.')
	const [long] = await requestsOf(await cid.complete('the end'), 1)
	t.match(long, { truncated: true })
	t.equal(long.body.length, 1024 * 1024)
	t.ok(long.size > long.body.length)
})

void t.test('they are deleted with their conversation, with their agent, and after their time', async (t) => {
	model.on('short', 'Done.')
	const dan = await follow(t, gateway, 'dan')
	const forgotten = await dan.complete('short')
	await requestsOf(forgotten, 1)
	const uid = await uidOf(forgotten)
	t.equal(await left(forgotten, uid), 2)
	await (world.lent as Context).use('runs').clear({ name: 'dan', uid })
	t.equal(await left(forgotten, uid), 0)

	const old = await dan.complete('short')
	await requestsOf(old, 1)
	const { events } = gateway.running.gateway
	const config = { retention_days: 30, question_ttl_days: 7, keep_requests: 2 } as RunSettings
	const ctx = { ...(world.lent as Context), events, config }
	await tidy(ctx, Date.now() + 1.9 * DAY_MS)
	t.equal(await left(old, uid), 2)
	await tidy(ctx, Date.now() + 2.1 * DAY_MS)
	t.equal(await left(old, uid), 0)

	const last = await dan.complete('short')
	await requestsOf(last, 1)
	await gateway.request('DELETE', '/v1/agents/dan')
	t.equal(await left(last, uid), 0)
})
