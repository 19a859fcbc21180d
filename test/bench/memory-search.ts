/**
 * Long-term memory, compared with LMDB and usearch alone with the same vectors. Ours also searches by words, fuses both results, reads
 * the memories from the store, and searches in a separate thread.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { sentences } from '../plugins/memory/thread.ts'
import { bodyOf, Connection } from './connection.ts'
import type { Effort } from './effort.ts'
import type { SearchRequest, StoreRequest } from './memory-plugin.ts'
import { startPeer } from './peer.ts'
import { compare, inTurns } from './rounds.ts'
import { median, quantile } from './statistics.ts'
import { startSubject } from './subject.ts'
import type { Figure } from './table.ts'
import { cpuMs } from './usage.ts'

const LANES = 32
const BATCH = 1_000
const QUESTIONS = 200
const IDLE_MS = 500

export async function memorySearch({ rounds, memories: sizes }: Effort): Promise<Figure[]> {
	const figures: Figure[] = []
	for (const memories of sizes) figures.push(...(await searchAmong(memories, rounds)))
	return figures
}

async function searchAmong(memories: number, rounds: number): Promise<Figure[]> {
	const plugin = readFileSync(new URL('./memory-plugin.ts', import.meta.url), 'utf8')
	await using gateway = await startSubject({
		files: { 'plugins/memory-bench/index.ts': plugin, 'config/gateway.yaml': 'plugins:\n  memory-bench: true\n' },
	})
	await using bare = await startPeer(new URL('./peers/bare-vectors.ts', import.meta.url))
	/** Uses a new connection, since the gateway closes idle ones while the other side is measured. */
	const post = async <T>(path: string, body: unknown): Promise<T> => {
		const client = await Connection.open(gateway.url)
		try {
			return bodyOf<T>(await client.post(path, body))
		} finally {
			client.close()
		}
	}
	const ask = <T>(path: string, body: StoreRequest | SearchRequest): Promise<T> => post(`/v1/bench/${path}`, body)
	await post('/v1/agents', { name: 'ada' })

	const contents = sentences(memories)
	const questions = sentences(memories + QUESTIONS)
		.slice(memories)
		.map((text) => text.split(' ').slice(0, 8).join(' '))
	const searchOurs = async (): Promise<number[]> =>
		(await ask<{ times: number[] }>('search', { agent: 'ada', questions })).times
	// The first search opens the index, which an agent without memories does not have. Later writes update it.
	await ask('store', { agent: 'ada', contents: contents.slice(0, 1), lanes: 1 })
	await searchOurs()

	const spent = { ours: 0, bare: 0 }
	const began = performance.now()
	for (let from = 1; from < memories; from += BATCH) {
		const batch = contents.slice(from, from + BATCH)
		spent.ours += (await ask<{ ms: number }>('store', { agent: 'ada', contents: batch, lanes: LANES })).ms
	}
	await untilIdle(gateway.pid)
	const whole = performance.now() - began - IDLE_MS
	for (let from = 0; from < memories; from += BATCH) {
		spent.bare += await bare.ask<number>('store', { contents: contents.slice(from, from + BATCH), lanes: LANES })
	}
	const perSecond = (ms: number): number => (memories * 1_000) / ms

	const pairs = await inTurns(rounds * 3, searchOurs, () => bare.ask<number[]>('search', { questions }))
	return [
		{ metric: `${memories} memories stored`, unit: '1/s', ours: perSecond(spent.ours), bare: perSecond(spent.bare) },
		{
			metric: `${memories} memories stored, until the graph has them`,
			unit: '1/s',
			ours: perSecond(whole),
			bare: perSecond(spent.bare),
		},
		{
			metric: `search among ${memories} memories, median`,
			unit: 'ms',
			...compare(pairs, median),
			goal: { of: 'ratio', most: 2 },
		},
		{
			metric: `search among ${memories} memories, p95`,
			unit: 'ms',
			...compare(pairs, (times) => quantile(times, 0.95)),
		},
	]
}

/** Waits until the process is idle: then the graph, which is built in the background, is complete. */
async function untilIdle(pid: number): Promise<void> {
	for (let before = cpuMs(pid); ;) {
		await sleep(IDLE_MS)
		const now = cpuMs(pid)
		if (now - before < IDLE_MS / 10) return
		before = now
	}
}
