/** A network connection between two programs that can be interrupted: connections stay open, but no data passes. */
import { once } from 'node:events'
import net from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

export interface TcpProxy {
	/** `127.0.0.1:PORT` */
	address: string
	/** Stops all data; new connections are not answered. */
	cut(): void
	heal(): void
	stop(): void
}

export async function startTcpProxy(target: string): Promise<TcpProxy> {
	const [host = '', port = ''] = target.split(':')
	const pairs = new Set<readonly [Socket, Socket]>()
	let isCut = false
	const server = net.createServer((client) => {
		const other = net.connect(Number(port), host)
		const pair = [client, other] as const
		pairs.add(pair)
		for (const [from, to] of [pair, [other, client]] as const) {
			from.on('error', () => to.destroy())
			from.once('close', () => {
				to.destroy()
				pairs.delete(pair)
			})
			if (!isCut) from.pipe(to)
		}
	})
	server.listen(0, '127.0.0.1')
	await once(server, 'listening')
	return {
		address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
		cut() {
			isCut = true
			for (const [client, other] of pairs) {
				client.unpipe(other).pause()
				other.unpipe(client).pause()
			}
		},
		heal() {
			isCut = false
			for (const [client, other] of pairs) {
				client.pipe(other)
				other.pipe(client)
			}
		},
		stop() {
			for (const [client] of pairs) client.destroy()
			server.close()
		},
	}
}
