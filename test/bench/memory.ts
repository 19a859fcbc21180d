/**
 * Memory use over many runs. Excludes mapped files: the pages of the database fill with use, as they should, and the kernel reclaims
 * them when it needs memory.
 */
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import type { BareCalls } from './peers/bare-openai.ts'
import { openRunner, runAll } from './runs.ts'
import { slope } from './statistics.ts'
import { connections, makeAgents, startSubject } from './subject.ts'
import type { Figure } from './table.ts'
import { memoryMib } from './usage.ts'

const CLIENTS = 32
const BATCH = 100
const FLAT_MIB = 2

export async function memory({ memoryWarmUp, memoryRuns }: Effort): Promise<Figure[]> {
	await using model = await startPeer(new URL('./peers/model-server.ts', import.meta.url))
	await using bare = await startPeer(new URL('./peers/bare-openai.ts', import.meta.url))
	const url = await model.ask<string>('url')
	await using gateway = await startSubject({ modelUrl: url })
	const clients = await connections(gateway.url, CLIENTS)
	using runner = await openRunner(gateway)

	/** Returns the growth per 1,000 runs, in MiB. */
	const growth = async (pid: number, doRuns: (count: number) => Promise<unknown>): Promise<number> => {
		await doRuns(memoryWarmUp)
		const points = [{ x: 0, y: memoryMib(pid).anonymous }]
		for (let runs = BATCH; runs <= memoryRuns; runs += BATCH) {
			await doRuns(BATCH)
			points.push({ x: runs / 1000, y: memoryMib(pid).anonymous })
		}
		return slope(points)
	}
	const ours = await growth(gateway.pid, async (count) => runAll(runner, clients, await makeAgents(clients, count)))
	const after = memoryMib(gateway.pid).anonymous
	const others = await growth(bare.pid, (calls) =>
		bare.ask('callAll', { url, calls, lanes: CLIENTS, turns: 0 } satisfies BareCalls),
	)
	for (const client of clients) client.close()
	return [
		{ metric: 'memory added by 1,000 runs', unit: 'MiB', ours, bare: others, goal: { of: 'ours', most: FLAT_MIB } },
		{
			metric: `memory after ${memoryWarmUp + memoryRuns} runs`,
			unit: 'MiB',
			ours: after,
			bare: memoryMib(bare.pid).anonymous,
		},
	]
}
