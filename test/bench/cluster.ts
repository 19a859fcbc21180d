/**
 * Runs a second with the data in a cluster, against the same gateway with the data in a folder; and a request through a gateway
 * that waits, against the same request at the one that works.
 */
import { randomBytes } from 'node:crypto'
import { withoutNats, startNats } from '../support/nats.ts'
import { bodyOf, Connection } from './connection.ts'
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import { compare, inTurns } from './rounds.ts'
import { openRunner, runAll } from './runs.ts'
import { quantile } from './statistics.ts'
import { connections, makeAgents, startSubject } from './subject.ts'
import type { Subject } from './subject.ts'
import type { Figure } from './table.ts'

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
		const pairs = await inTurns(rounds, rounder(gateway, runs), rounder(folder, runs))
		figures.push({
			metric: `runs, ${servers} server(s) of NATS, against a folder`,
			unit: '1/s',
			...compare(pairs, (perSecond) => perSecond),
		})
	}
	return [...figures, ...(await forwarded(effort))]
}

/** One connection, one request after another. */
async function forwarded({ rounds, requests }: Effort): Promise<Figure[]> {
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
	direct.close()
	through.close()
	return [0.5, 0.99].map((share) => ({
		metric: `a request through a gateway that waits, against directly, p${share * 100}`,
		unit: 'ms',
		...compare(pairs, (times) => quantile(times, share)),
	}))
}

/** Each run in a conversation of its own, and each round on new connections: an idle one would be closed meanwhile. */
function rounder(gateway: Subject, runs: number): () => Promise<number> {
	return async () => {
		const clients = await connections(gateway.url, CLIENTS)
		const agents = await makeAgents(clients, runs)
		using runner = await openRunner(gateway)
		const ms = await runAll(runner, clients, agents)
		for (const client of clients) client.close()
		return (runs * 1000) / ms
	}
}
