/** Runs code that may hang, exit or crash in a child process. */
import { fork } from 'node:child_process'
import type { ChildProcess, ForkOptions } from 'node:child_process'
import { compileCache } from '../process/handover.mjs'

/**
 * Starts a program and discards its output. `onMessage` gets what it sends by `sendToParent`; `signal` kills it. `ended` says
 * how the process ended: `exit code 0`, or the name of the signal that killed it. It rejects if the process could not be started.
 */
export function startChild<Message>(
	program: URL,
	args: string[],
	options: Pick<ForkOptions, 'env' | 'signal' | 'serialization'>,
	onMessage: (message: Message) => void,
): { process: ChildProcess; ended: Promise<string> } {
	const { promise: ended, resolve, reject } = Promise.withResolvers<string>()
	const process = fork(program, args, {
		...options,
		execArgv: [],
		stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
		env: { NODE_COMPILE_CACHE: compileCache, ...options.env },
		killSignal: 'SIGKILL',
	})
		.on('message', onMessage)
		.on('exit', (code, killedBy) => resolve(killedBy ?? `exit code ${code}`))
		// After an abort, `exit` follows and settles this.
		.on('error', (thrown) => process.pid ?? reject(thrown))
	return { process, ended }
}

/** Called in the child process. Settles once the message is sent, since the next statement may end the process. */
export function sendToParent<Message extends object>(message: Message): Promise<void> {
	return new Promise((resolve) => process.send?.(message, () => resolve()))
}
