/** Runs a second with the data in a cluster, against the same gateway with the data in a folder. */
import { withoutNats, startNats } from '../support/nats.ts'
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import { compare, inTurns } from './rounds.ts'
import { openRunner, runAll } from './runs.ts'
import { connections, makeAgents, startSubject } from './subject.ts'
import type { Subject } from './subject.ts'
import type { Figure } from './table.ts'

const CLIENTS = 32

export async function cluster({ rounds, runs }: Effort): Promise<Figure[]> {
	const missing = withoutNats()
	if (missing !== false) throw new Error(missing)
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
	return figures
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
