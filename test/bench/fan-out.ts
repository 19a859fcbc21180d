/** Durable events to 200 clients of the event stream, compared with a plain server that writes the same frames and stores nothing. */
import { readFileSync } from 'node:fs'
import { bodyOf } from './connection.ts'
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import { compare, inTurns } from './rounds.ts'
import { connections, startSubject } from './subject.ts'
import type { Figure } from './table.ts'
import type { Burst } from './tick-plugin.ts'

const CLIENTS = 200
const LANES = 32

export async function fanOut({ rounds, events }: Effort): Promise<Figure[]> {
	const plugin = readFileSync(new URL('./tick-plugin.ts', import.meta.url), 'utf8')
	await using gateway = await startSubject({
		files: { 'plugins/tick/index.ts': plugin, 'config/gateway.yaml': 'plugins:\n  tick: true\n' },
	})
	await using bare = await startPeer(new URL('./peers/bare-writer.ts', import.meta.url))
	await using readers = await startPeer(new URL('./peers/readers.ts', import.meta.url))
	const bareUrl = await bare.ask<string>('url')
	await readers.ask('open', { url: gateway.url, path: '/v1/events/stream?event_type=bench.tick', clients: CLIENTS })
	await readers.ask('open', { url: bareUrl, path: '/', clients: CLIENTS })
	const [client] = await connections(gateway.url, 1)
	const burst: Burst = { events, lanes: LANES, text: 'x'.repeat(200) }

	/** Returns deliveries per second. */
	const measure = async (url: string, begin: () => Promise<unknown>): Promise<number> => {
		const began = performance.now()
		await Promise.all([readers.ask('expect', { url, events: events * CLIENTS }), begin()])
		return (events * CLIENTS * 1000) / (performance.now() - began)
	}
	const pairs = await inTurns(
		rounds,
		() => measure(gateway.url, async () => bodyOf((await client?.post('/v1/tick', burst)) ?? { status: 0, body: '' })),
		() => measure(bareUrl, () => bare.ask('burst', burst)),
	)
	client?.close()
	return [
		{ metric: `events delivered to ${CLIENTS} SSE clients`, unit: '1/s', ...compare(pairs, (perSecond) => perSecond) },
	]
}
