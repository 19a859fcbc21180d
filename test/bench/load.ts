/** Runs per second, and the time of one run, with 1 to 256 clients. */
import type { Connection } from './connection.ts'
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import type { BareCalls, BareTimes } from './peers/bare-openai.ts'
import { compare, inTurns } from './rounds.ts'
import { openRunner } from './runs.ts'
import type { Runner } from './runs.ts'
import { median } from './statistics.ts'
import { connections, makeAgents, startSubject } from './subject.ts'
import type { Figure } from './table.ts'

/** Minimum number of runs per client in a round. */
const MIN_RUNS = 3

interface Round {
	perSecond: number
	/** Milliseconds. */
	p50: number
}

export async function load({ rounds, runs, runsWarmUp, clients: counts }: Effort): Promise<Figure[]> {
	await using model = await startPeer(new URL('./peers/model-server.ts', import.meta.url))
	await using bare = await startPeer(new URL('./peers/bare-openai.ts', import.meta.url))
	const url = await model.ask<string>('url')
	await using gateway = await startSubject({ modelUrl: url })
	using runner = await openRunner(gateway)
	const figures: Figure[] = []
	// Starts with the most clients, with which both sides compile their code fastest.
	for (const [index, count] of counts.toReversed().entries()) {
		const clients = await connections(gateway.url, count)
		const calls = Math.max(runs / 2, MIN_RUNS * count)
		const pairs = await inTurns<Round>(
			rounds,
			async () => roundOf(await runEach(runner, clients, await makeAgents(clients, calls))),
			async () => {
				const all: BareCalls = { url, calls, lanes: count, turns: 0 }
				return roundOf(await bare.ask<BareTimes>('callAll', all))
			},
			index === 0 ? Math.ceil(runsWarmUp / calls) : 1,
		)
		for (const client of clients) client.close()
		figures.unshift(
			{
				metric: `runs at ${count} ${count === 1 ? 'client' : 'clients'}`,
				unit: '1/s',
				...compare(pairs, ({ perSecond }) => perSecond),
				point: { of: 'throughput', clients: count },
			},
			{
				metric: `one run at ${count} ${count === 1 ? 'client' : 'clients'}, p50`,
				unit: 'ms',
				...compare(pairs, ({ p50 }) => p50),
				point: { of: 'latency', clients: count },
			},
		)
	}
	return figures
}

function roundOf({ ms, each }: BareTimes): Round {
	return { perSecond: (each.length * 1000) / ms, p50: median(each) }
}

/** Like `runAll`, but also returns the milliseconds of each run. */
async function runEach(runner: Runner, clients: readonly Connection[], agents: readonly string[]): Promise<BareTimes> {
	const left = agents.values()
	const each: number[] = []
	const client = async (connection: Connection): Promise<void> => {
		for (const agent of left) each.push((await runner.run(connection, agent)).ended)
	}
	const began = performance.now()
	await Promise.all(clients.map(client))
	return { ms: performance.now() - began, each }
}
