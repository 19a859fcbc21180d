import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { addToken } from '../support/add.ts'
import { svcFor } from '../support/cli.ts'
import { makeHome, startGateway } from '../support/gateway.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import { eventually } from '../support/wait.ts'
import { openNats } from '../../plugins/cluster/nats/open.ts'

void t.test('all data is migrated to a cluster and back', { skip: withoutNats(), timeout: 240_000 }, async (t) => {
	await using cluster = await startNats()
	const settings = (fields: string): string => `store: { prefix: moved, replicas: 1${fields} }\n`
	const home = makeHome({ config: settings('') }, t)
	const env = { SVC_CLUSTER_PREFIX: 'moved', SVC_CLUSTER_REPLICAS: '1' }
	const start = async (url?: string) => startGateway({ home, env: { ...env, ...(url && { SVC_CLUSTER: url }) } })
	let gateway = await start()
	const { token } = await addToken(gateway, ['*'])
	const call = (method: string, path: string, body?: unknown) =>
		gateway.request(method, path, { token, ...(body !== undefined && { body }) })
	await call('POST', '/v1/agents', { name: 'anna' })
	await call('POST', '/v1/vault/secrets', { name: 'KEY', value: 'a value that nobody guesses' })
	await call('POST', '/v1/agents/anna/memory', { content: 'The harbour is closed on Mondays.' })
	const run = async (prompt: string): Promise<string> => {
		const { run_id } = (await call('POST', '/v1/agents/anna/runs', { prompt })).body
		await eventually(async () => (await call('GET', `/v1/runs/${run_id}`)).body.status === 'completed')
		return run_id
	}
	const runs = [await run('one'), await run('/tool memory_stm_write {"key":"k","value":"v"}')]
	const snapshot = async (): Promise<unknown> => ({
		agents: (await call('GET', '/v1/agents')).body,
		secrets: (await call('GET', '/v1/vault/secrets')).body,
		memory: (await call('GET', '/v1/agents/anna/memory')).body,
		runs: await Promise.all(runs.map(async (id) => (await call('GET', `/v1/runs/${id}`)).body)),
		steps: await Promise.all(runs.map(async (id) => (await call('GET', `/v1/runs/${id}/steps`)).body)),
		audit: await Promise.all(
			runs.map(async (id) =>
				(await call('GET', `/v1/audit?run_id=${id}&limit=500`)).body.events.map(
					({ event_id }: { event_id: string }) => event_id,
				),
			),
		),
	})
	const before = await snapshot()
	const svc = svcFor({ home })

	const busy = await svc(['migrate', '--from', 'lmdb:', '--to', cluster.url], { env })
	t.match(busy, { code: 5, stderr: /another gateway .* runs with the home/ })
	await gateway.running.stop()

	for (const argv of [
		['migrate', '--from', 'lmdb:'],
		['migrate', '--from', 'lmdb:', '--to', 'redis://x'],
	])
		t.equal((await svc(argv, { env })).code, 2)
	const migrated = await svc(['migrate', '--from', 'lmdb:', '--to', cluster.url, '--json'], { env })
	t.match(migrated, { code: 0, stderr: /Set store\.url/ })
	t.ok(migrated.json().records > 5)
	const twice = await svc(['migrate', '--from', 'lmdb:', '--to', cluster.url], { env })
	t.match(twice.stderr, /the target already contains data/)

	gateway = await start(cluster.url)
	t.strictSame(await snapshot(), before)
	runs.push(await run('three'))
	const later = await snapshot()
	await gateway.running.stop()

	const back = join(home, 'back')
	const returned = await svc(['migrate', '--from', cluster.url, '--to', `lmdb:${back}`, '--json'], { env })
	t.equal(returned.code, 0, returned.stderr)
	if (process.env.SVC_TEST_CLUSTER === 'all') {
		writeFileSync(join(home, 'config/gateway.yaml'), settings(', path: back'))
		gateway = await start()
		t.strictSame(await snapshot(), later)
		await gateway.running.stop()
	}

	await using holder = await openNats({ url: cluster.url, prefix: 'moved', replicas: 1 })
	t.ok(holder)
	const refused = await svc(['migrate', '--from', cluster.url, '--to', `lmdb:${join(home, 'third')}`], { env })
	t.match(refused.stderr, /works on the data in the cluster: stop it first/)
})
