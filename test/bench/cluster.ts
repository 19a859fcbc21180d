/**
 * Compares runs per second with the data in a cluster and in a folder; with one and two additional gateways that lend their threads and
 * without; and requests and events through a waiting gateway and directly.
 */
import { randomBytes } from 'node:crypto'
import { send } from '../support/gateway.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import { eventually } from '../support/wait.ts'
import { bodyOf, Connection } from './connection.ts'
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import { compare, inTurns } from './rounds.ts'
import { openRunner, runAll } from './runs.ts'
import { quantile } from './statistics.ts'
import { connections, makeAgents, startSubject } from './subject.ts'
import type { Subject } from './subject.ts'
import type { Figure } from './table.ts'
import { cpuMs } from './usage.ts'

const CLIENTS = 32

export async function cluster(effort: Effort): Promise<Figure[]> {
	const missing = withoutNats()
	if (missing !== false) throw new Error(missing)
	const { rounds, runs } = effort
	const figures: Figure[] = []
	for (const servers of [1, 3] as const) {
		await using nats = await startNats(servers, { sync: true })
		await using model = await startPeer(new URL('./peers/model-server.ts', import.meta.url))
		const modelUrl = await model.ask<string>('url')
		await using folder = await startSubject({ modelUrl })
		const env = { SVC_CLUSTER: nats.url, SVC_CLUSTER_REPLICAS: String(servers) }
		await using gateway = await startSubject({ modelUrl, env })
		// Fewer runs, since they take longer: a single server writes each message to the disk separately.
		const count = servers === 1 ? runs / 4 : runs / 2
		const pairs = await inTurns(rounds, rounder(gateway, count), rounder(folder, count))
		figures.push({
			metric: `runs, ${servers} server(s) of NATS, against a folder`,
			unit: '1/s',
			...compare(pairs, ({ perSecond }) => perSecond),
		})
	}
	return [...figures, ...(await lent(effort)), ...(await forwarded(effort))]
}

/** The latency of the model with which places are the bottleneck, and the places of each gateway. */
const SLOW_MODEL_MS = 1_000
const PLACES = 8

/** All gateways share the machine, so additional ones only add places and relieve the working gateway. */
async function lent({ rounds, runs }: Effort): Promise<Figure[]> {
	const figures: Figure[] = []
	for (const gateways of [2, 3]) {
		await using nats = await startNats(1)
		await using model = await startPeer(new URL('./peers/model-server.ts', import.meta.url))
		const modelUrl = await model.ask<string>('url')
		const start = (prefix: string, key: string): Promise<Subject> => {
			const env = { SVC_CLUSTER: nats.url, SVC_CLUSTER_REPLICAS: '1', SVC_CLUSTER_PREFIX: prefix, SVC_VAULT_KEY: key }
			const yaml = `agents: {max_agents: 100000}\nworkers: {threads: 1, runs_per_thread: ${PLACES}}\n`
			return startSubject({ modelUrl, env, files: { 'config/gateway.yaml': yaml } })
		}
		const newKey = (): string => randomBytes(32).toString('base64')
		await using alone = await start('alone', newKey())
		const key = newKey()
		await using working = await start('shared', key)
		await using lenders = new AsyncDisposableStack()
		for (let n = 1; n < gateways; n++) lenders.use(await start('shared', key))
		await lending(working, gateways - 1)

		const busy = await inTurns(rounds, rounder(working, runs / 4), rounder(alone, runs / 4))
		await model.ask('delay', SLOW_MODEL_MS)
		const slowRuns = runs / 16
		const slow = await inTurns(rounds, rounder(working, slowRuns), rounder(alone, slowRuns))
		const against = `${gateways} gateways against one`
		figures.push(
			{ metric: `runs, ${against}`, unit: '1/s', ...compare(busy, ({ perSecond }) => perSecond) },
			{
				metric: `CPU time of a run at the working one, ${against}`,
				unit: 'ms',
				...compare(busy, ({ cpuPerRun }) => cpuPerRun),
			},
			{
				metric: `runs with a model that takes ${SLOW_MODEL_MS / 1000} s, ${PLACES} places a gateway, ${against}`,
				unit: '1/s',
				...compare(slow, ({ perSecond }) => perSecond),
			},
		)
	}
	return figures
}

/** Settles once `count` gateways lend their threads. */
async function lending(working: Subject, count: number): Promise<void> {
	await eventually(async () => {
		const { body } = await send(`${working.url}/v1/cluster`, 'GET')
		return (
			body.gateways.filter((one: { works: boolean; threads: number }) => !one.works && one.threads > 0).length === count
		)
	})
}

/** Sequential requests on one connection. */
async function forwarded({ rounds, requests, single }: Effort): Promise<Figure[]> {
	await using nats = await startNats(1)
	const env = {
		SVC_CLUSTER: nats.url,
		SVC_CLUSTER_REPLICAS: '1',
		SVC_VAULT_KEY: randomBytes(32).toString('base64'),
	}
	await using working = await startSubject({ env })
	await using waiting = await startSubject({ env })
	const [direct, through] = (await Promise.all([working, waiting].map(({ url }) => Connection.open(url)))) as [
		Connection,
		Connection,
	]
	bodyOf(await through.post('/v1/agents', { name: 'ada' }))
	const measure = async (connection: Connection): Promise<number[]> => {
		const times: number[] = []
		for (let n = 0; n < requests; n++) {
			const began = performance.now()
			bodyOf(await connection.get('/v1/agents/ada'))
			times.push(performance.now() - began)
		}
		return times
	}
	const pairs = await inTurns(
		rounds,
		() => measure(through),
		() => measure(direct),
	)
	await lending(working, 1)
	const events = async (gateway: Subject): Promise<number[]> => {
		using runner = await openRunner(gateway, true)
		const times: number[] = []
		for (let n = 0; n < single / 3; n++) times.push((await runner.run(direct, 'ada')).started)
		return times
	}
	const heard = await inTurns(
		rounds,
		() => events(waiting),
		() => events(working),
	)
	direct.close()
	through.close()
	const figures = (what: string, measured: typeof pairs): Figure[] =>
		[0.5, 0.99].map((share) => ({
			metric: `${what} a waiting gateway, against directly, p${share * 100}`,
			unit: 'ms',
			...compare(measured, (times) => quantile(times, share)),
		}))
	return [...figures('a request through', pairs), ...figures('the first event of a run, at', heard)]
}

/** Each run has a new conversation, and each round new connections, since idle ones would be closed. */
function rounder(gateway: Subject, runs: number): () => Promise<{ perSecond: number; cpuPerRun: number }> {
	return async () => {
		const clients = await connections(gateway.url, CLIENTS)
		const agents = await makeAgents(clients, runs)
		using runner = await openRunner(gateway)
		const before = cpuMs(gateway.pid)
		const ms = await runAll(runner, clients, agents)
		const cpuPerRun = (cpuMs(gateway.pid) - before) / runs
		for (const client of clients) client.close()
		return { perSecond: (runs * 1000) / ms, cpuPerRun }
	}
}
