/** Runs per second with 32 clients, and the CPU time of one run, in new and in long conversations. */
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import type { BareCalls, BareTimes } from './peers/bare-openai.ts'
import { compare, inFreshProcesses, inTurns } from './rounds.ts'
import type { Pair } from './rounds.ts'
import { openRunner, runAll } from './runs.ts'
import { connections, makeAgents, startSubject } from './subject.ts'
import type { Figure, Goal } from './table.ts'
import { cpuMs } from './usage.ts'

const CLIENTS = 32

interface Round {
	perSecond: number
	cpuPerRun: number
}

export async function throughput({ rounds, processes, runs, runsWarmUp, turns }: Effort): Promise<Figure[]> {
	await using model = await startPeer(new URL('./peers/model-server.ts', import.meta.url))
	const url = await model.ask<string>('url')

	const fresh = await inFreshProcesses(processes, async () => {
		await using sides = await startSides(url, runs)
		const { clients, runAgents, callAll } = sides
		return await inTurns(
			rounds,
			// A new conversation for each run, so that its length does not grow during the measurement.
			async () => runAgents(await makeAgents(clients, runs)),
			() => callAll(0),
			runsWarmUp / runs,
		)
	})
	const figures = (pairs: Pair<Round>[], when: string, least?: Goal, most?: Goal): Figure[] => [
		{
			metric: `runs${when}, ${CLIENTS} clients`,
			unit: '1/s',
			...compare(pairs, (round) => round.perSecond),
			...(least && { goal: least }),
		},
		{
			metric: `CPU time of one run${when}`,
			unit: 'ms',
			...compare(pairs, (round) => round.cpuPerRun),
			...(most && { goal: most }),
		},
	]

	await using sides = await startSides(url, runs)
	const { clients, runAgents, callAll } = sides
	const added = runs / CLIENTS
	const long: Figure[] = []
	for (const [index, count] of turns.entries()) {
		const pairs = await inTurns(
			rounds,
			async () => {
				const talkers = await makeAgents(clients, CLIENTS)
				await runAgents(repeat(talkers, count))
				return runAgents(repeat(talkers, added))
			},
			// The average length of the measured conversations.
			() => callAll(Math.round(count + added / 2)),
			index === 0 ? runsWarmUp / runs : 1,
		)
		long.push(...figures(pairs, ` after ${count} turns`))
	}
	return [...figures(fresh, '', { of: 'ratio', least: 0.8 }, { of: 'ratio', most: 1.6 }), ...long]
}

/** A gateway with its clients, and the bare loop. */
async function startSides(url: string, runs: number) {
	await using resources = new AsyncDisposableStack()
	const bare = resources.use(await startPeer(new URL('./peers/bare-openai.ts', import.meta.url)))
	const gateway = resources.use(await startSubject({ modelUrl: url }))
	const clients = await connections(gateway.url, CLIENTS)
	for (const client of clients) resources.defer(() => client.close())
	const runner = resources.use(await openRunner(gateway))

	const measure = async (pid: number, work: () => Promise<number>): Promise<Round> => {
		const cpu = cpuMs(pid)
		const ms = await work()
		return { perSecond: (runs * 1000) / ms, cpuPerRun: (cpuMs(pid) - cpu) / runs }
	}
	const owned = resources.move()
	return {
		clients,
		runAgents: (agents: readonly string[]) => measure(gateway.pid, () => runAll(runner, clients, agents)),
		callAll: (turns: number) =>
			measure(bare.pid, async () => {
				const calls: BareCalls = { url, calls: runs, lanes: CLIENTS, turns }
				return (await bare.ask<BareTimes>('callAll', calls)).ms
			}),
		[Symbol.asyncDispose]: () => owned.disposeAsync(),
	}
}

/** The list of agents, repeated `times` times, so that concurrent clients use different agents. */
function repeat(agents: readonly string[], times: number): string[] {
	return Array.from({ length: times }, () => agents).flat()
}
