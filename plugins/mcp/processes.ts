/**
 * The processes of stdio servers: each in a group of its own, with a mark in its environment that its descendants
 * inherit. Group and mark together find everything that a server has started, even if it has left the group.
 *
 * Each has a file under `run/mcp/` from before its start until all of its processes have ended. After `kill -9` of the gateway,
 * the next gateway finds those files and ends the processes that they name.
 */
import { spawn } from 'node:child_process'
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault, messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/log/log.ts'
import { VARIABLE, markOf, signalGroup } from './process-table.ts'
import { reap } from './reap.ts'
import { sharedSweep } from './sweep.ts'

interface ProcessOrder {
	command: string
	args: readonly string[]
	env: Record<string, string>
}

export interface ServerProcess {
	readonly child: ChildProcessWithoutNullStreams
	readonly pid: number
	/** Settles with the way it ended, such as `exit code 1`, when the process itself has ended. */
	readonly ended: Promise<string>
	/**
	 * Ends the process and all that it has started. First its input is closed, as the protocol requires, then come SIGTERM
	 * and SIGKILL; `now` goes to SIGKILL at once. May be called again.
	 */
	stop(now?: boolean): Promise<void>
}

export type Processes = ReturnType<typeof openProcesses>

const END_OF_INPUT_MS = 800
const SIGTERM_MS = 1_200
const SIGKILL_MS = 1_000
const POLL_MS = 20

/** `folder`: the home's `run/mcp`. Its disposal ends all of them. */
export function openProcesses(folder: string, log: Logger) {
	const running = new Set<ServerProcess>()
	const sweep = sharedSweep()
	// A gateway that exits at once, such as after a second Ctrl-C, waits for nothing.
	const killGroups = (): void => {
		for (const { pid } of running) signalGroup(pid, 'SIGKILL')
	}
	process.once('exit', killGroups)

	return {
		/** Throws `mcp_failed` if the program cannot be started. */
		async start({ command, args, env }: ProcessOrder): Promise<ServerProcess> {
			const mark = randomBytes(16).toString('hex')
			const cwd = join(folder, mark)
			const file = `${cwd}.json`
			const forget = (): void => {
				try {
					rmSync(cwd, { recursive: true, force: true, maxRetries: 2 })
					rmSync(file, { force: true })
				} catch (error) {
					log.warn({ err: error }, 'the folder of an MCP server could not be removed; the next start will retry')
				}
			}
			let child: ChildProcessWithoutNullStreams
			try {
				mkdirSync(cwd, { recursive: true, mode: 0o700 })
				writeFileSync(file, '{}', { mode: 0o600 })
				child = spawn(command, args, {
					cwd,
					env: { ...env, [VARIABLE]: mark },
					stdio: ['pipe', 'pipe', 'pipe'],
					detached: process.platform !== 'win32',
					shell: false,
					windowsHide: true,
				})
				await once(child, 'spawn') // or its error
			} catch (error) {
				forget()
				throw notStarted(command, error)
			}
			for (const one of [child, child.stdin, child.stdout, child.stderr]) one.on('error', () => {}) // its end is reported
			const pid = child.pid as number
			try {
				writeFileSync(file, JSON.stringify(markOf(pid) ?? { pid }))
			} catch (error) {
				log.warn({ err: error }, 'the pid of a process could not be written; its mark will be used') // such as a full disk
			}

			const ended = new Promise<string>((resolve) => {
				child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
			})
			let killing = false
			let stopping: Promise<void> | undefined
			const finish = async (): Promise<void> => {
				if (!killing) {
					child.stdin.end()
					await until(() => child.exitCode !== null || child.signalCode !== null || killing, END_OF_INPUT_MS)
				}
				if (!killing && signalGroup(pid, 0)) {
					signalGroup(pid, 'SIGTERM')
					await until(() => !signalGroup(pid, 0) || killing, SIGTERM_MS)
				}
				signalGroup(pid, 'SIGKILL')
				await Promise.race([ended, pause(SIGKILL_MS)])
				await sweep(mark)
				for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
				forget()
				running.delete(server)
			}
			const server: ServerProcess = {
				child,
				pid,
				ended,
				stop(now = false) {
					if (now) {
						killing = true
						signalGroup(pid, 'SIGKILL')
					}
					return (stopping ??= finish())
				},
			}
			running.add(server)
			return server
		},
		/** Ends processes left over from an earlier gateway of this home. */
		reap: (): Promise<void> => reap(folder, log),
		async [Symbol.asyncDispose](): Promise<void> {
			await Promise.all([...running].map((one) => one.stop()))
			process.off('exit', killGroups)
		},
	}
}

function notStarted(command: string, cause: unknown): Fault {
	const { code } = cause as NodeJS.ErrnoException
	const why: Record<string, string> = {
		ENOENT: 'there is no such program; give its absolute path, or install it in a folder of PATH',
		EACCES: 'it is not an executable file, or the gateway may not run it',
		EAGAIN: 'this machine has too many processes',
		EMFILE: 'the gateway has too many open files',
		ENOMEM: 'this machine is out of memory',
	}
	const text = code === 'ENOENT' && isLine(command) ? asArguments(command) : (why[code ?? ''] ?? messageOf(cause))
	return new Fault('mcp_failed', `the command ${JSON.stringify(command)} cannot be started: ${text}`, { cause })
}

/** A path may contain spaces; the name of a program in PATH rarely does. */
function isLine(command: string): boolean {
	return /\s/.test(command.trim()) && !isAbsolute(command)
}

function asArguments(command: string): string {
	return `there is no such program; its arguments are separate: ${command.trim().split(/\s+/).join(', ')}`
}

async function until(condition: () => boolean, limitMs: number): Promise<void> {
	const end = performance.now() + limitMs
	while (!condition() && performance.now() < end) await pause(POLL_MS)
}
