import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import type { Test } from 'tap'

/**
 * Below the ports that Linux assigns (from 32,768), and other systems (from 49,152): a server at port 0 and a connection, here or in
 * another process, never get one of these, so that a port stays free until the test uses it.
 */
const PORTS = { from: 20_000, to: 32_000 }
const ATTEMPTS = 100

/** Different loopback ports that are free at this moment. */
export async function freePorts(count: number): Promise<number[]> {
	const ports = new Set<number>()
	for (let attempt = 0; ports.size < count; attempt++) {
		if (attempt === ATTEMPTS + count) throw new Error(`of ${attempt} ports, only ${ports.size} were free`)
		const port = randomInt(PORTS.from, PORTS.to)
		if (await isFree(port)) ports.add(port)
	}
	return [...ports]
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

async function isFree(port: number): Promise<boolean> {
	const server = createServer()
	try {
		await once(server.listen(port, '127.0.0.1'), 'listening')
	} catch {
		return false
	}
	await new Promise((resolve) => server.close(resolve))
	return true
}
