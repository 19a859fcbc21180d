/** One gateway per home: the store's checks are exact only while a single process writes. */
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import net from 'node:net'
import type { Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault, messageOf } from '../errors.ts'

/** The longest path of a local socket that every system accepts. */
const PATH_LIMIT_BYTES = 100
const ATTEMPTS = 50
const PAUSE_MS = 100
const ANSWER_LIMIT_MS = 2_000
const ANSWER_LIMIT = 100
/** How long a process that was killed during the cleanup blocks others. Less than all attempts take together. */
const FORGOTTEN_MS = 3_000

/**
 * Locks the home. Throws `home_in_use`, or `unavailable` if the home is not writable. The lock is a listening local socket in the
 * home, which no other user may enter. The kernel closes it however the process ends, so a connection shows whether a process
 * holds it; an age or a pid would not.
 */
export async function lockHome(home: string): Promise<AsyncDisposable> {
	const path = socketPath(home)
	for (let attempt = 1; ; attempt++) {
		const server = (await listen(path)) ?? (await listenInstead(path))
		if (server) return { [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())) }
		const holder = await askHolder(path)
		if (holder !== null || attempt === ATTEMPTS) {
			const who = holder === null ? '' : ` (process ${holder})`
			throw new Fault(
				'home_in_use',
				`another gateway${who} runs with the home ${home}; stop it, or set SVC_HOME to another folder`,
			)
		}
		await pause(PAUSE_MS)
	}
}

/** The pid of the process that holds the home, `unknown` if it does not say; null if no process does. */
export async function holderOf(home: string): Promise<string | null> {
	return existsSync(home) ? askHolder(socketPath(home)) : null
}

/** Whether a process holds the home. Unlike `holderOf`, it does not wait for a process that is busy. */
export async function isHeld(home: string): Promise<boolean> {
	if (!existsSync(home)) return false
	const socket = net.connect(socketPath(home))
	try {
		await once(socket, 'connect')
		return true
	} catch {
		return false
	} finally {
		socket.destroy()
	}
}

/** Null if the path is in use, by a listening process or by the leftover of a killed one. */
async function listen(path: string): Promise<Server | null> {
	const server = net.createServer((socket) => {
		socket.on('error', () => socket.destroy()) // the client may disconnect at any moment
		socket.end(`${process.pid}\n`)
	})
	server.unref()
	try {
		server.listen(path)
		await once(server, 'listening')
		return server
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return null
		throw new Fault(
			'unavailable',
			`the lock ${path} cannot be made (${messageOf(error)}); give the home to the user that runs the gateway, or mount its disk for writing`,
			{ cause: error },
		)
	}
}

/**
 * Removes the socket of a killed process and listens. Of several processes that start at the same time, only one may do this: a
 * second one would remove the new socket of the first. Creating a folder is atomic, so a folder is the lock for the cleanup.
 */
async function listenInstead(path: string): Promise<Server | null> {
	const cleanup = `${path}.cleaning`
	try {
		mkdirSync(cleanup)
	} catch {
		const since = statSync(cleanup, { throwIfNoEntry: false })?.mtimeMs
		if (since !== undefined && since < Date.now() - FORGOTTEN_MS) rmSync(cleanup, { recursive: true, force: true })
		return null
	}
	try {
		if ((await askHolder(path)) !== null) return null
		rmSync(path, { force: true })
		return await listen(path)
	} finally {
		rmSync(cleanup, { recursive: true, force: true })
	}
}

function socketPath(home: string): string {
	const real = realpathSync(home)
	const id = hash('sha256', real).slice(0, 32)
	if (process.platform === 'win32') return `\\\\.\\pipe\\svc-gateway-${id}`
	const path = join(real, 'run', 'gateway.lock')
	return Buffer.byteLength(path) <= PATH_LIMIT_BYTES ? path : join(tmpdir(), `svc-${id}.lock`)
}

/** The pid of the process that listens there; null if none does. */
async function askHolder(path: string): Promise<string | null> {
	let text = ''
	try {
		const socket = net.connect({ path, signal: AbortSignal.timeout(ANSWER_LIMIT_MS) })
		for await (const data of socket) {
			text += String(data)
			if (text.length > ANSWER_LIMIT) break
		}
	} catch (error) {
		// Aborted: a process listens, and is too busy to respond.
		if ((error as Error).name !== 'AbortError') return null
	}
	const pid = text.trim()
	// It is shown in commands to copy, and the listening process may not be a gateway.
	return /^\d{1,10}$/.test(pid) ? pid : 'unknown'
}
