/** What the gateway adds to one run alone, and how soon its first event comes. */
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import type { BareCalls, BareTimes } from './peers/bare-openai.ts'
import { inTurns } from './rounds.ts'
import { openRunner } from './runs.ts'
import { quantile } from './statistics.ts'
import { connections, makeAgents, startSubject } from './subject.ts'
import type { Figure } from './table.ts'

interface Times {
	started: number[]
	ended: number[]
}

export async function latency({ rounds, single }: Effort): Promise<Figure[]> {
	await using model = await startPeer(new URL('./peers/model-server.ts', import.meta.url))
	await using bare = await startPeer(new URL('./peers/bare-openai.ts', import.meta.url))
	const url = await model.ask<string>('url')
	await using gateway = await startSubject({ modelUrl: url })
	const clients = await connections(gateway.url, 1)
	const client = clients[0] as (typeof clients)[number]
	using runner = await openRunner(gateway, true)

	const pairs = await inTurns<Times>(
		rounds,
		async () => {
			const times: Times = { started: [], ended: [] }
			for (const agent of await makeAgents(clients, single)) {
				const { started, ended } = await runner.run(client, agent)
				times.started.push(started)
				times.ended.push(ended)
			}
			return times
		},
		async () => {
			const { each } = await bare.ask<BareTimes>('callAll', {
				url,
				calls: single,
				lanes: 1,
				turns: 0,
			} satisfies BareCalls)
			return { started: [], ended: each }
		},
	)
	client.close()

	const ours = pairs.flatMap((pair) => pair.ours.ended)
	const alone = pairs.flatMap((pair) => pair.bare.ended)
	const firsts = pairs.flatMap((pair) => pair.ours.started)
	const added = (share: number): number => quantile(ours, share) - quantile(alone, share)
	return [
		{ metric: 'one run alone, p50', unit: 'ms', ours: quantile(ours, 0.5), bare: quantile(alone, 0.5) },
		{ metric: 'one run alone, p99', unit: 'ms', ours: quantile(ours, 0.99), bare: quantile(alone, 0.99) },
		{ metric: 'added to one run, p50', unit: 'ms', ours: added(0.5), bare: null, goal: { of: 'ours', most: 4 } },
		{ metric: 'added to one run, p99', unit: 'ms', ours: added(0.99), bare: null },
		{ metric: 'first event, p50', unit: 'ms', ours: quantile(firsts, 0.5), bare: null, goal: { of: 'ours', most: 2 } },
		{ metric: 'first event, p99', unit: 'ms', ours: quantile(firsts, 0.99), bare: null },
	]
}
