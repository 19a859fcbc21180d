/**
 * Runs per second with 32 clients through the OpenAI-compatible API, and with a tool call, compared with loops of the `openai` package
 * that make the same model calls.
 */
import { readFileSync } from 'node:fs'
import type { Connection } from './connection.ts'
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import type { BareCalls, BareTimes } from './peers/bare-openai.ts'
import { compare, inFreshProcesses, inTurns } from './rounds.ts'
import type { Pair } from './rounds.ts'
import { openRunner, runAll } from './runs.ts'
import { connections, makeAgents, startSubject } from './subject.ts'
import type { Subject, SubjectOptions } from './subject.ts'
import type { Figure } from './table.ts'

const CLIENTS = 32

/** What is measured. `open` returns a function that executes all runs of a round, and returns the milliseconds. */
interface Side extends SubjectOptions {
	modelUrl: string
	withTool: boolean
	open(gateway: Subject, clients: readonly Connection[], resources: DisposableStack): Promise<() => Promise<number>>
}

export async function surfaces({ rounds, processes, runs, runsWarmUp }: Effort): Promise<Figure[]> {
	await using model = await startPeer(new URL('./peers/model-server.ts', import.meta.url))
	const perSecond = (ms: number): number => (runs * 1000) / ms

	const measure = async (side: Side): Promise<Pair<number>[]> => {
		await using bare = await startPeer(new URL('./peers/bare-openai.ts', import.meta.url))
		await using gateway = await startSubject(side)
		const { modelUrl: url, withTool } = side
		const clients = await connections(gateway.url, CLIENTS)
		using resources = new DisposableStack()
		const doRuns = await side.open(gateway, clients, resources)
		const pairs = await inTurns(
			rounds,
			async () => perSecond(await doRuns()),
			async () => {
				const calls: BareCalls = { url, calls: runs, lanes: CLIENTS, turns: 0, withTool }
				return perSecond((await bare.ask<BareTimes>('callAll', calls)).ms)
			},
			runsWarmUp / runs,
		)
		for (const client of clients) client.close()
		return pairs
	}
	const chat: Side = {
		modelUrl: await model.ask<string>('url'),
		withTool: false,
		files: { 'config/gateway.yaml': 'plugins: {openai-api: true}\n' },
		async open(_gateway, clients) {
			const agents = await makeAgents(clients, CLIENTS)
			return () => completeAll(clients, agents, runs)
		},
	}
	const tools: Side = {
		modelUrl: await model.ask<string>('url with a tool'),
		withTool: true,
		files: {
			'plugins/bench/index.ts': readFileSync(new URL('./bench-tool-plugin.ts', import.meta.url), 'utf8'),
			'config/gateway.yaml': 'agents: {max_agents: 100000}\nplugins: {bench: true}\n',
		},
		async open(gateway, clients, resources) {
			const runner = resources.use(await openRunner(gateway))
			return async () => runAll(runner, clients, await makeAgents(clients, runs))
		},
	}
	const figure = async (metric: string, side: Side, least: number): Promise<Figure> => ({
		metric: `${metric}, ${CLIENTS} clients`,
		unit: '1/s',
		...compare(await inFreshProcesses(processes, () => measure(side)), (one) => one),
		goal: { of: 'ratio', least },
	})
	return [await figure('chat completions', chat, 0.65), await figure('runs with a call of a tool', tools, 0.6)]
}

/** Every client streams completions sequentially, each in a new conversation. Returns the total milliseconds. */
async function completeAll(clients: readonly Connection[], agents: readonly string[], count: number): Promise<number> {
	let left = count
	const complete = async (client: Connection, agent: string): Promise<void> => {
		while (left-- > 0) {
			const messages = [{ role: 'user', content: 'hello' }]
			const { status, body } = await client.post('/v1/chat/completions', { model: agent, stream: true, messages })
			if (status !== 200 || !body.includes('[DONE]')) throw new Error(`a completion is incomplete: ${status} ${body}`)
		}
	}
	const began = performance.now()
	await Promise.all(clients.map((client, at) => complete(client, agents[at] ?? '')))
	return performance.now() - began
}
