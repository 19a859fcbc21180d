/** The bare counterpart of the event stream: writes a frame for each event to all responses. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { answerWith } from '../peer.ts'
import type { Burst } from '../tick-plugin.ts'

const clients = new Set<ServerResponse>()
const server = createServer((_request, response) => {
	response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': hello\n\n')
	clients.add(response)
	response.on('close', () => clients.delete(response))
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')

let position = 0

async function burst({ events, lanes, text }: Burst): Promise<void> {
	let left = events
	const lane = async (): Promise<void> => {
		while (left-- > 0) {
			const event = {
				event_id: randomUUID(),
				timestamp: new Date().toISOString(),
				agent_id: null,
				run_id: null,
				sequence: 0,
				event_type: 'bench.tick',
				payload: { text },
			}
			const frame = `id: ${++position}\ndata: ${JSON.stringify(event)}\n\n`
			for (const client of clients) client.write(frame)
			await turn()
		}
	}
	await Promise.all(Array.from({ length: lanes }, lane))
}

answerWith({ url: () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`, burst })
