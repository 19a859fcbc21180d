import { once } from 'node:events'
import { createServer } from 'node:net'
import type { ListenAt } from '../http/listening.ts'

/** Listens at an address and releases it at once. Returns the system's error; null if the address is available. */
export async function tryListening(at: ListenAt): Promise<NodeJS.ErrnoException | null> {
	const server = createServer()
	try {
		server.listen({ ...at, exclusive: true })
		await once(server, 'listening')
		return null
	} catch (error) {
		return error as NodeJS.ErrnoException
	} finally {
		server.close()
	}
}
