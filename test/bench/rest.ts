/** Reading an agent over HTTP, compared with a hapi route that returns the same from memory. */
import { bodyOf } from './connection.ts'
import type { Connection } from './connection.ts'
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import { compare, inTurns } from './rounds.ts'
import { connections, startSubject } from './subject.ts'
import type { Figure } from './table.ts'
import { cpuMs } from './usage.ts'

const CONNECTIONS = 32

interface Round {
	perSecond: number
	cpuPerRequest: number
}

export async function rest({ rounds, requests }: Effort): Promise<Figure[]> {
	await using bare = await startPeer(new URL('./peers/bare-hapi.ts', import.meta.url))
	await using gateway = await startSubject()
	const ours = await connections(gateway.url, CONNECTIONS)
	const others = await connections(await bare.ask<string>('url'), CONNECTIONS)
	bodyOf(await (ours[0] as Connection).post('/v1/agents', { name: 'ada' }))

	const measure = async (pid: number, clients: readonly Connection[]): Promise<Round> => {
		let left = requests
		const client = async (connection: Connection): Promise<void> => {
			while (left-- > 0) bodyOf(await connection.get('/v1/agents/ada'))
		}
		const cpu = cpuMs(pid)
		const began = performance.now()
		await Promise.all(clients.map(client))
		const ms = performance.now() - began
		return { perSecond: (requests * 1000) / ms, cpuPerRequest: (cpuMs(pid) - cpu) / requests }
	}
	const pairs = await inTurns(
		rounds,
		() => measure(gateway.pid, ours),
		() => measure(bare.pid, others),
	)
	for (const connection of [...ours, ...others]) connection.close()
	return [
		{
			metric: `REST requests, ${CONNECTIONS} connections`,
			unit: '1/s',
			...compare(pairs, (round) => round.perSecond),
			goal: { of: 'ratio', least: 0.65 },
		},
		{ metric: 'CPU time of one request', unit: 'ms', ...compare(pairs, (round) => round.cpuPerRequest) },
	]
}
