/** Runs per second with 32 clients, and the CPU time of one run, in new and in long conversations. */
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import type { BareCalls, BareTimes } from './peers/bare-openai.ts'
import { compare, inTurns } from './rounds.ts'
import { openRunner, runAll } from './runs.ts'
import { connections, makeAgents, startSubject } from './subject.ts'
import type { Figure } from './table.ts'
import { cpuMs } from './usage.ts'

const CLIENTS = 32

interface Round {
	perSecond: number
	cpuPerRun: number
}

export async function throughput({ rounds, runs, runsWarmUp, turns: longTurns }: Effort): Promise<Figure[]> {
	await using model = await startPeer(new URL('./peers/model-server.ts', import.meta.url))
	await using bare = await startPeer(new URL('./peers/bare-openai.ts', import.meta.url))
	const url = await model.ask<string>('url')
	await using gateway = await startSubject({ modelUrl: url })
	const clients = await connections(gateway.url, CLIENTS)
	using runner = await openRunner(gateway)

	const measure = async (pid: number, work: () => Promise<number>): Promise<Round> => {
		const cpu = cpuMs(pid)
		const ms = await work()
		return { perSecond: (runs * 1000) / ms, cpuPerRun: (cpuMs(pid) - cpu) / runs }
	}
	const callAll = (turns: number): Promise<Round> =>
		measure(bare.pid, async () => {
			const { ms } = await bare.ask<BareTimes>('callAll', {
				url,
				calls: runs,
				lanes: CLIENTS,
				turns,
			} satisfies BareCalls)
			return ms
		})

	const fresh = await inTurns(
		rounds,
		async () => {
			// A new conversation for each run, so that its length does not grow during the measurement.
			const agents = await makeAgents(clients, runs)
			return measure(gateway.pid, () => runAll(runner, clients, agents))
		},
		() => callAll(0),
		runsWarmUp / runs,
	)

	const added = runs / CLIENTS
	const afterTurns = async (turns: number): Promise<Figure[]> => {
		const pairs = await inTurns(
			rounds,
			async () => {
				const talkers = await makeAgents(clients, CLIENTS)
				await runAll(runner, clients, repeat(talkers, turns))
				return measure(gateway.pid, () => runAll(runner, clients, repeat(talkers, added)))
			},
			// The average length of the measured conversations.
			() => callAll(Math.round(turns + added / 2)),
		)
		const times = `after ${turns} turns`
		return [
			{
				metric: `runs ${times}, ${CLIENTS} clients`,
				unit: '1/s',
				...compare(pairs, (round) => round.perSecond),
			},
			{ metric: `CPU time of one run ${times}`, unit: 'ms', ...compare(pairs, (round) => round.cpuPerRun) },
		]
	}
	const long: Figure[] = []
	for (const turns of longTurns) long.push(...(await afterTurns(turns)))
	for (const client of clients) client.close()

	return [
		{
			metric: `runs, ${CLIENTS} clients`,
			unit: '1/s',
			...compare(fresh, (round) => round.perSecond),
			goal: { of: 'ratio', least: 0.8 },
		},
		{
			metric: 'CPU time of one run',
			unit: 'ms',
			...compare(fresh, (round) => round.cpuPerRun),
			goal: { of: 'ratio', most: 1.6 },
		},
		...long,
	]
}

/** The list of agents, repeated `times` times, so that concurrent clients use different agents. */
function repeat(agents: readonly string[], times: number): string[] {
	return Array.from({ length: times }, () => agents).flat()
}
