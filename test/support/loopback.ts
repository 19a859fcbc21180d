/** Servers of tests on loopback. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Listens at `port`, by default a free one. `stop` ends all connections. */
export async function listenOnLoopback(
	server: Server,
	port = 0,
): Promise<{ port: number; url: string; stop(): Promise<void> }> {
	await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
	const { port: actual } = server.address() as AddressInfo
	return {
		port: actual,
		url: `http://127.0.0.1:${actual}`,
		stop: () =>
			new Promise((resolve) => {
				server.close(() => resolve())
				server.closeAllConnections()
			}),
	}
}

/** For `catch` of a handler that reads its request: the client, such as a gateway that is killed, may end at any time. */
export function unlessReset(error: NodeJS.ErrnoException): void {
	if (error.code !== 'ECONNRESET') throw error
}
