import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import type { Test } from 'tap'

/** Different loopback ports that are free at this moment. */
export async function freePorts(count: number): Promise<number[]> {
	const servers = await Promise.all(
		Array.from({ length: count }, async () => {
			const server = createServer().listen(0, '127.0.0.1')
			await once(server, 'listening')
			return server
		}),
	)
	const ports = servers.map((server) => (server.address() as AddressInfo).port)
	await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
	return ports
}

export async function freePort(): Promise<number> {
	const [port] = await freePorts(1)
	return port as number
}

/**
 * A loopback port that refuses connections until the end of the test. Another program could listen at a port that is only free: this
 * one is in use, as the client's end of a connection.
 */
export async function closedPort(t: Pick<Test, 'teardown'>): Promise<number> {
	const server = createServer().listen(0, '127.0.0.1')
	await once(server, 'listening')
	const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
	const [[accepted]] = await Promise.all([once(server, 'connection'), once(client, 'connect')])
	t.teardown(() => {
		for (const socket of [client, accepted as Socket]) socket.destroy()
		server.close()
	})
	return client.localPort as number
}
