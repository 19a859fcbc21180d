/** Gateways that cannot reach their cluster for longer than a lease allows. */
import { once } from 'node:events'
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { endedRun } from '../support/ended-run.ts'
import { makeHome, send } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import { freePort } from '../support/free-ports.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import { spawnGateway } from '../support/process.ts'
import { providersAt } from '../support/providers.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { eventually } from '../support/wait.ts'

/** A gateway on a cluster of one server, and a model that answers on the test's command. */
async function setUp(t: Test) {
	const [cluster, model] = await Promise.all([startNats(), startManualModel()])
	const home = makeHome({
		config: `
server: { shutdown_grace_s: 0 }
store: { url: '${cluster.url}', replicas: 1 }
${providersAt({ held: model.url })}`,
	})
	t.teardown(() => Promise.all([cluster[Symbol.asyncDispose](), model.stop()]))
	const gateway = await spawnGateway(home)
	t.teardown(() => gateway.kill())
	return { cluster, model, home, gateway }
}

void t.test('a gateway stops although its NATS servers are gone', { skip: withoutNats() }, async (t) => {
	const { cluster, model, gateway } = await setUp(t)
	await send(`${gateway.url}/v1/agents`, 'POST', { body: { name: 'anna' } })
	await send(`${gateway.url}/v1/agents/anna/runs`, 'POST', { body: { prompt: 'go' } })
	const call = await model.called('go')
	cluster.nodes[0]?.child.kill('SIGKILL')
	call.answer('nobody can store this')
	const exited = once(gateway.child, 'exit')
	gateway.child.kill('SIGTERM')
	t.strictSame(await exited, [0, null])
})

const skip = process.env.SVC_TEST_CLUSTER === 'all' ? withoutNats() : 'it takes long: SVC_TEST_CLUSTER=all'

void t.test('requests get 503, runs pause, and both continue', { skip, timeout: 240_000 }, async (t) => {
	const { cluster, model, gateway, home } = await setUp(t)
	const server = cluster.nodes[0]?.child
	t.teardown(() => server?.kill('SIGCONT'))
	// It restarts when the cluster is back, with another port.
	const urlOf = (): string => (JSON.parse(readFileSync(join(home, 'run/gateway.json'), 'utf8')) as { url: string }).url
	const request = async (method: string, path: string, body?: unknown) =>
		send(urlOf() + path, method, body === undefined ? {} : { body })
	await request('POST', '/v1/agents', { name: 'anna' })
	await request('POST', '/v1/agents', { name: 'berta' })
	const runs: string[] = []
	for (const [name, prompt] of [
		['anna', 'one'],
		['berta', 'two'],
	] as const)
		runs.push((await request('POST', `/v1/agents/${name}/runs`, { prompt })).body.run_id)
	const [one, two] = [await model.called('one'), await model.called('two')]

	server?.kill('SIGSTOP')
	one.callTool('memory_stm_write', JSON.stringify({ key: 'k', value: 1 }))
	// It waits for the cluster for a short time. After that, reads fail too.
	const unknown = await request('POST', '/v1/agents', { name: 'carla' })
	for (const refused of [
		unknown,
		await request('GET', '/v1/agents/anna'),
		await request('POST', '/v1/agents', { name: 'dora' }),
	]) {
		t.equal(refused.status, 503)
		t.match(refused.headers.get('retry-after'), /^\d+$/)
	}
	const verbose = await send(`${gateway.url}/readyz?verbose`, 'GET')
	t.match(verbose.body, /\[-\]store /)
	two.answer('lost')
	server?.kill('SIGCONT')

	await eventually(
		() => request('GET', '/v1/agents/anna').catch(() => ({ status: 0 })),
		({ status }) => status === 200,
	)
	t.equal(gateway.child.exitCode, null, 'the process is the same')
	t.match(gateway.errors(), /the cluster is back/)
	;(await model.called('one', 2)).answer('the end of one')
	;(await model.called('two', 2)).answer('the end of two')
	for (const run of runs) {
		t.equal((await endedRun(urlOf(), run)).status, 'completed')
	}
	t.equal(
		(await request('POST', '/v1/agents', { name: 'dora' })).status,
		201,
		'a request that was refused at once was not stored',
	)
	const { status } = await request('POST', '/v1/agents', { name: 'carla' })
	t.ok([201, 409].includes(status), 'the outcome of the first one was unknown')
})

void t.test(
	'a gateway without a connection stops before another one takes over',
	{ skip, timeout: 240_000 },
	async (t) => {
		const [cluster, model] = await Promise.all([startNats(), startManualModel()])
		const network = await startTcpProxy(cluster.nodes[0]?.address ?? '')
		const configAt = (address: string): string => `
server: { shutdown_grace_s: 0 }
store: { url: 'nats://${address}', replicas: 1 }
${providersAt({ held: model.url })}`
		const home = makeHome({ config: configAt(network.address) })
		const gateway = await spawnGateway(home, { SVC_PORT: String(await freePort()) })
		const otherHome = makeHome({ config: configAt(cluster.nodes[0]?.address ?? '') })
		cpSync(join(home, 'keys'), join(otherHome, 'keys'), { recursive: true })
		const other = await spawnGateway(otherHome)
		t.teardown(async () => {
			network.stop()
			await Promise.all([gateway.kill(), other.kill()])
			await Promise.all([cluster[Symbol.asyncDispose](), model.stop()])
		})
		const at = (one: { url: string }, method: string, path: string, body?: unknown) =>
			send(one.url + path, method, body === undefined ? {} : { body })
		const role = async (one: { url: string }): Promise<string> =>
			/role (\w+)/.exec((await at(one, 'GET', '/readyz?verbose')).body)?.[1] ?? ''
		await at(other, 'POST', '/v1/agents', { name: 'anna' })
		const { run_id } = (await at(other, 'POST', '/v1/agents/anna/runs', { prompt: 'go' })).body
		const call = await model.called('go')
		t.same([await role(gateway), await role(other)], ['working', 'waiting'])

		network.cut()
		call.callTool('memory_stm_write', JSON.stringify({ key: 'k', value: 1 }))
		let lastAnswer = 0
		let isBegun = false
		const answers = (async () => {
			while (!isBegun) {
				const { status } = await at(gateway, 'GET', '/v1/agents/anna')
				if (status === 200) lastAnswer = performance.now()
				await new Promise((resolve) => setTimeout(resolve, 20))
			}
		})()
		await eventually(async () => (await role(other)) === 'working')
		const firstAnswer = performance.now()
		isBegun = true
		await answers
		t.ok(lastAnswer < firstAnswer, 'never two at the same time')
		const refused = await at(gateway, 'GET', '/v1/agents/anna')
		t.equal(refused.status, 503)
		t.match(refused.headers.get('retry-after'), /^\d+$/)
		t.equal((await at(gateway, 'POST', '/v1/agents', { name: 'late' })).status, 503)
		;(await model.called('go', 2)).answer('done by the other one')
		const ended = await eventually(
			async () => (await at(other, 'GET', `/v1/runs/${run_id}`)).body,
			({ status }) => status === 'completed',
		)
		t.match(ended.answer, /done by the other one/)

		network.heal()
		// It restarts, and waits.
		await eventually(
			() => role(gateway).catch(() => ''),
			(found) => found === 'waiting',
		)
		t.equal((await at(gateway, 'GET', `/v1/runs/${run_id}`)).body.status, 'completed')
		t.equal((await at(other, 'GET', '/v1/agents/late')).status, 404, 'a refused request was not stored')
		t.equal(model.calls.length, 2)
	},
)
