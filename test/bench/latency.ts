/**
 * The latency that the gateway adds to a single run, and the time until its first event. Runs and bare calls alternate one by one, so
 * that cold processor caches affect both.
 */
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import type { BareCalls, BareTimes } from './peers/bare-openai.ts'
import { openRunner } from './runs.ts'
import { quantile } from './statistics.ts'
import { connections, makeAgents, startSubject } from './subject.ts'
import type { Figure } from './table.ts'

export async function latency({ single, singleWarmUp }: Effort): Promise<Figure[]> {
	await using model = await startPeer(new URL('./peers/model-server.ts', import.meta.url))
	await using bare = await startPeer(new URL('./peers/bare-openai.ts', import.meta.url))
	const url = await model.ask<string>('url')
	await using gateway = await startSubject({ modelUrl: url })
	const clients = await connections(gateway.url, 1)
	const client = clients[0] as (typeof clients)[number]
	using runner = await openRunner(gateway, true)

	const firsts: number[] = []
	const ours: number[] = []
	const alone: number[] = []
	for (const [index, agent] of (await makeAgents(clients, singleWarmUp + single)).entries()) {
		const { started, ended } = await runner.run(client, agent)
		const call: BareCalls = { url, calls: 1, lanes: 1, turns: 0 }
		const { each } = await bare.ask<BareTimes>('callAll', call)
		if (index < singleWarmUp) continue
		firsts.push(started)
		ours.push(ended)
		alone.push(...each)
	}
	client.close()

	const added = (share: number): number => quantile(ours, share) - quantile(alone, share)
	return [
		{ metric: 'one run alone, p50', unit: 'ms', ours: quantile(ours, 0.5), bare: quantile(alone, 0.5) },
		{ metric: 'one run alone, p99', unit: 'ms', ours: quantile(ours, 0.99), bare: quantile(alone, 0.99) },
		{ metric: 'added to one run, p50', unit: 'ms', ours: added(0.5), bare: null, goal: { of: 'ours', most: 1.8 } },
		{ metric: 'added to one run, p99', unit: 'ms', ours: added(0.99), bare: null },
		{
			metric: 'first event, p50',
			unit: 'ms',
			ours: quantile(firsts, 0.5),
			bare: null,
			goal: { of: 'ours', most: 1.8 },
		},
		{ metric: 'first event, p99', unit: 'ms', ours: quantile(firsts, 0.99), bare: null },
	]
}
