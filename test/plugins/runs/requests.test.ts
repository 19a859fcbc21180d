/** `runs.keep_requests`: stored requests to models, without secrets, and their deletion. */
import t from 'tap'
import type { RunRecord } from '../../../plugins/runs/contract.ts'
import { keys } from '../../../plugins/runs/keys.ts'
import { tidy } from '../../../plugins/runs/maintenance.ts'
import { addToken } from '../../support/add.ts'
import { svcFor } from '../../support/cli.ts'
import { contextProbe } from '../../support/context-probe.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { startModelServer } from '../../support/model-server.ts'
import { assertError } from '../../support/error-response.ts'
import { runSettings } from '../../support/run-settings.ts'
import { follow } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'

const DAY_MS = 24 * 3_600_000
const probe = contextProbe()
const model = await startModelServer()
const gateway = await startGateway({
	config: `providers:\n  mock: { kind: openai, base_url: '${model.url}', api_key: key-of-mock, model: m }\ndefault_provider: mock\nruns: { keep_requests: 2 }\nplugins: { probe: true }\n`,
	files: probe.files,
})
t.teardown(() => gateway.stop())
t.teardown(() => model.stop())
const ctx = probe.context()
const { store } = ctx

/** Waits for `count` requests: a run may end before they are stored. */
async function requestsOf(run_id: string, step: number, count = 1): Promise<Answer[]> {
	return eventually(
		async () => (await gateway.request('GET', `/v1/runs/${run_id}/steps/${step}/requests`)).body.requests,
		(requests: Answer[]) => requests.length >= count,
	)
}

async function countRecords(run_id: string, uid: string): Promise<number> {
	const lists = [store.list(keys.requests(uid, run_id)), store.list(keys.requestBodies(uid, run_id))]
	return (await Promise.all(lists.map((list) => Array.fromAsync(list)))).flat().length
}

async function uidOf(run_id: string): Promise<string> {
	return ((await ctx.use('runs').get(run_id)) as RunRecord).agent_uid
}

/** The fields of a request, without those that the server adds to its record. */
const fieldsOf = ({ model: name, messages, tools }: Answer): object => ({ name, messages, tools })

void t.test('each request is stored as it was sent, with the step of its answer', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	model.on('look', { tools: [{ name: 'memory_stm_read', arguments: {} }] }, { status: 503 }, 'Done.')
	const run_id = await ada.complete('look')
	const [first] = await requestsOf(run_id, 1)
	const [failed, last, ...more] = await requestsOf(run_id, 2, 2)
	t.strictSame(more, [])
	t.strictSame(
		[first, failed, last].map(({ body }) => fieldsOf(JSON.parse(body))),
		model.requests('look').map(fieldsOf),
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

void t.test('reading requests needs requests:read', async (t) => {
	const bob = await follow(t, gateway, 'bob')
	model.on('scope', 'Done.')
	const run_id = await bob.complete('scope')
	const path = `/v1/runs/${run_id}/steps/1/requests`
	const { token } = await addToken(gateway, ['agents:read'])
	assertError(t, await gateway.request('GET', path, { token }), {
		status: 403,
		code: 'forbidden',
	})
	const { token: reader } = await addToken(gateway, ['requests:read'])
	t.equal((await gateway.request('GET', path, { token: reader })).status, 200)
	assertError(t, await gateway.request('GET', '/v1/runs/none/steps/1/requests'), { status: 404, code: 'not_found' })
	assertError(t, await gateway.request('GET', `/v1/runs/${run_id}/steps/0/requests`), {
		status: 400,
		code: 'invalid_request',
	})
})

void t.test('stored requests contain no secret, also if JSON escapes it, and long ones are truncated', async (t) => {
	const cid = await follow(t, gateway, 'cid', { config: { context_window: 4_000_000, context: { tokens: 3_000_000 } } })
	const value = 'sk-"quoted"-\\secret-0123456789'
	const secret = await gateway.request('POST', '/v1/vault/secrets', { body: { name: 'KEY', value } })
	const grant = { secret_id: secret.body.id, agent_id: 'cid', reveal: true }
	await gateway.request('POST', '/v1/vault/grants', { body: grant })
	model.on('read', { tools: [{ name: 'vault_read', arguments: { name: 'KEY' } }] }, 'Done.')
	const run_id = await cid.complete('read')
	t.ok(JSON.stringify(model.requests('read').at(-1)).includes('quoted'), 'the model received the secret')
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

void t.test('requests are deleted with their conversation or agent, and after runs.keep_requests days', async (t) => {
	model.on('short', 'Done.')
	const dan = await follow(t, gateway, 'dan')
	const forgotten = await dan.complete('short')
	await requestsOf(forgotten, 1)
	const uid = await uidOf(forgotten)
	t.equal(await countRecords(forgotten, uid), 2)
	await ctx.use('runs').clear({ name: 'dan', uid })
	t.equal(await countRecords(forgotten, uid), 0)

	const old = await dan.complete('short')
	await requestsOf(old, 1)
	const { events } = gateway.running.gateway
	const config = { ...runSettings, keep_requests: 2 }
	const tidyCtx = { ...ctx, events, config }
	await tidy(tidyCtx, Date.now() + 1.9 * DAY_MS)
	t.equal(await countRecords(old, uid), 2)
	await tidy(tidyCtx, Date.now() + 2.1 * DAY_MS)
	t.equal(await countRecords(old, uid), 0)

	const last = await dan.complete('short')
	await requestsOf(last, 1)
	await gateway.request('DELETE', '/v1/agents/dan')
	t.equal(await countRecords(last, uid), 0)
})
