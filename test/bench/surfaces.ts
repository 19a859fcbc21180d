/**
 * Runs per second with 32 clients through the OpenAI-compatible API, and with a tool call, compared with loops of the `openai` package
 * that make the same model calls.
 */
import { readFileSync } from 'node:fs'
import type { Connection } from './connection.ts'
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import type { BareCalls, BareTimes } from './peers/bare-openai.ts'
import { compare, inTurns } from './rounds.ts'
import { openRunner, runAll } from './runs.ts'
import { connections, makeAgents, startSubject } from './subject.ts'
import type { Figure } from './table.ts'

const CLIENTS = 32

export async function surfaces({ rounds, runs, runsWarmUp }: Effort): Promise<Figure[]> {
	await using model = await startPeer(new URL('./peers/model-server.ts', import.meta.url))
	await using bare = await startPeer(new URL('./peers/bare-openai.ts', import.meta.url))
	const perSecond = (ms: number): number => (runs * 1000) / ms
	const callAll = async (url: string, withTool: boolean): Promise<number> => {
		const calls: BareCalls = { url, calls: runs, lanes: CLIENTS, turns: 0, withTool }
		return perSecond((await bare.ask<BareTimes>('callAll', calls)).ms)
	}

	const chat = async (): Promise<Figure> => {
		const url = await model.ask<string>('url')
		await using gateway = await startSubject({
			modelUrl: url,
			files: { 'config/gateway.yaml': 'plugins: {openai-api: true}\n' },
		})
		const clients = await connections(gateway.url, CLIENTS)
		const agents = await makeAgents(clients, CLIENTS)
		const pairs = await inTurns(
			rounds,
			async () => perSecond(await completeAll(clients, agents, runs)),
			() => callAll(url, false),
			runsWarmUp / runs,
		)
		for (const client of clients) client.close()
		return figureOf(`chat completions, ${CLIENTS} clients`, pairs, 0.65)
	}

	const tools = async (): Promise<Figure> => {
		const url = await model.ask<string>('url with a tool')
		const plugin = readFileSync(new URL('./bench-tool-plugin.ts', import.meta.url), 'utf8')
		const config = 'agents: {max_agents: 100000}\nplugins: {bench: true}\n'
		await using gateway = await startSubject({
			modelUrl: url,
			files: { 'plugins/bench/index.ts': plugin, 'config/gateway.yaml': config },
		})
		const clients = await connections(gateway.url, CLIENTS)
		using runner = await openRunner(gateway)
		const pairs = await inTurns(
			rounds,
			async () => perSecond(await runAll(runner, clients, await makeAgents(clients, runs))),
			() => callAll(url, true),
			runsWarmUp / runs,
		)
		for (const client of clients) client.close()
		return figureOf(`runs with a call of a tool, ${CLIENTS} clients`, pairs, 0.6)
	}
	return [await chat(), await tools()]
}

function figureOf(metric: string, pairs: Awaited<ReturnType<typeof inTurns<number>>>, least: number): Figure {
	return { metric, unit: '1/s', ...compare(pairs, (one) => one), goal: { of: 'ratio', least } }
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
