/** One gateway a home: the store's checks are exact only while a single process writes. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { realpathSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Fault } from './errors.ts'

/**
 * Takes the home, or throws `home_in_use`. The lock is a listening local socket: the kernel lets go of it however the
 * process ends, so there is nothing stale to judge by age or pid.
 */
export async function lockHome(home: string): Promise<AsyncDisposable> {
	const path = socketPath(home)
	for (let attempt = 0; ; attempt++) {
		const server = net.createServer((socket) => socket.end(`${process.pid}\n`))
		server.unref()
		try {
			server.listen(path)
			await once(server, 'listening')
			return { [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())) }
		} catch (error) {
			if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || attempt > 2) throw error
			const holder = await askHolder(path)
			if (holder !== null) {
				throw new Fault(
					'home_in_use',
					`another gateway (process ${holder}) runs with the home ${home}; stop it, or set SVC_HOME to another folder`,
				)
			}
			rmSync(path, { force: true })
		}
	}
}

function socketPath(home: string): string {
	const id = createHash('sha256').update(realpathSync(home)).digest('hex').slice(0, 32)
	// Linux: the abstract namespace leaves no file behind, and every process of this machine sees the same one whatever its TMPDIR is.
	if (process.platform === 'linux') return `\0svc-gateway-${id}`
	return process.platform === 'win32' ? `\\\\.\\pipe\\svc-gateway-${id}` : join(tmpdir(), `svc-${id}.sock`)
}

/** The pid of whoever listens there; null where nobody does. */
async function askHolder(path: string): Promise<string | null> {
	return new Promise((resolve) => {
		const socket = net.connect(path)
		let text = ''
		socket.setTimeout(2_000, () => socket.destroy(new Error('timeout')))
		socket.on('data', (data) => (text += data.toString()))
		socket.on('end', () => resolve(text.trim()))
		socket.on('error', () => resolve(null))
	})
}
