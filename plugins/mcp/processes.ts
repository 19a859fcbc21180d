/**
 * Starts and ends the processes of stdio servers. Each runs in its own process group, with a mark in its environment that its
 * descendants inherit. By group and mark, all of them are found, even those that have left the group.
 *
 * Each has a file under `run/mcp/`, which is written before the start and deleted when all of its processes have ended. After
 * `kill -9` of the gateway, the next gateway reads these files and kills the processes that are left.
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
import { VARIABLE, markOf, sharedSweep, signalGroup } from './process-table.ts'
import { reap } from './reap.ts'

interface ProcessOrder {
	command: string
	args: readonly string[]
	env: Record<string, string>
}

export interface ServerProcess {
	readonly child: ChildProcessWithoutNullStreams
	readonly pid: number
	/** Settles when the process itself has ended, with the signal or exit code, such as `exit code 1`. */
	readonly ended: Promise<string>
	/**
	 * Ends the process and all that it has started: closes its input, as the protocol requires, then sends SIGTERM, then SIGKILL.
	 * `now`: sends SIGKILL immediately. May be called again.
	 */
	stop(now?: boolean): Promise<void>
}

export type Processes = ReturnType<typeof openProcesses>

const END_OF_INPUT_MS = 800
const SIGTERM_MS = 1_200
const SIGKILL_MS = 1_000
const POLL_MS = 20

/** `folder`: the home's `run/mcp`. Disposal ends all processes. */
export function openProcesses(folder: string, log: Logger) {
	const running = new Set<ServerProcess>()
	const sweep = sharedSweep()
	// For a gateway that exits without a clean shutdown, such as after a second Ctrl-C.
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
			// `ended` reports the failure.
			for (const emitter of [child, child.stdin, child.stdout, child.stderr]) emitter.on('error', () => {})
			const pid = child.pid as number
			try {
				writeFileSync(file, JSON.stringify(markOf(pid) ?? { pid }))
			} catch (error) {
				// For example, the disk is full.
				log.warn({ err: error }, 'the pid of an MCP server could not be written; a later start finds it by its mark')
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
	const reasons: Record<string, string> = {
		ENOENT: 'there is no such program; give its absolute path, or install it in a folder of PATH',
		EACCES: 'it is not an executable file, or the gateway may not run it',
		EAGAIN: 'this machine has too many processes',
		EMFILE: 'the gateway has too many open files',
		ENOMEM: 'this machine is out of memory',
	}
	const text =
		code === 'ENOENT' && isCommandLine(command) ? splitAdvice(command) : (reasons[code ?? ''] ?? messageOf(cause))
	return new Fault('mcp_failed', `the command ${JSON.stringify(command)} cannot be started: ${text}`, { cause })
}

/** Whether the command seems to contain its arguments. An absolute path may contain spaces, but a program's name rarely does. */
function isCommandLine(command: string): boolean {
	return /\s/.test(command.trim()) && !isAbsolute(command)
}

function splitAdvice(command: string): string {
	return `there is no such program; give its arguments separately: ${command.trim().split(/\s+/).join(', ')}`
}

async function until(condition: () => boolean, limitMs: number): Promise<void> {
	const end = performance.now() + limitMs
	while (!condition() && performance.now() < end) await pause(POLL_MS)
}
