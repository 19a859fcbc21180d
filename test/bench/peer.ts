/** The other processes of a measurement: files of `peers/`, which are called by messages. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface Peer extends AsyncDisposable {
	pid: number
	/** Calls one of the peer's handlers; throws its error. */
	ask<T>(name: string, params?: unknown): Promise<T>
}

type Handlers = Record<string, (params: never) => unknown>
interface Call {
	id: number
	name: string
	params: unknown
}
interface Answer {
	id: number
	value?: unknown
	error?: string
}

/** Longer than any handler needs. */
const ANSWER_WITHIN_MS = 120_000

/** `file` as in `new URL('./peers/name.ts', import.meta.url)`. */
export async function startPeer(file: URL, args: string[] = []): Promise<Peer> {
	const child = fork(fileURLToPath(file), args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
	const pending = new Map<number, PromiseWithResolvers<unknown>>()
	const exited = once(child, 'exit')
	child.on('message', (message) => {
		const { id, value, error } = message as Answer
		if (error === undefined) pending.get(id)?.resolve(value)
		else pending.get(id)?.reject(new Error(error))
		pending.delete(id)
	})
	child.on('exit', (code, signal) => {
		for (const one of pending.values()) one.reject(new Error(`${file.pathname} ended early (${code ?? signal})`))
	})
	let calls = 0
	return {
		pid: child.pid ?? 0,
		async ask<T>(name: string, params: unknown = null): Promise<T> {
			const id = ++calls
			const answer = Promise.withResolvers<unknown>()
			pending.set(id, answer)
			const timer = setTimeout(
				() => answer.reject(new Error(`${file.pathname} has not answered "${name}" in ${ANSWER_WITHIN_MS / 1000} s`)),
				ANSWER_WITHIN_MS,
			)
			child.send({ id, name, params } satisfies Call)
			try {
				return (await answer.promise) as T
			} finally {
				clearTimeout(timer)
			}
		},
		async [Symbol.asyncDispose]() {
			child.kill('SIGTERM')
			await exited
		},
	}
}

/** For the peer itself: handles calls until the parent process has ended. */
export function answerWith(handlers: Handlers): void {
	const answer = async ({ id, name, params }: Call): Promise<void> => {
		try {
			const handler = handlers[name]
			if (!handler) throw new Error(`there is no handler "${name}"`)
			process.send?.({ id, value: await handler(params as never) } satisfies Answer)
		} catch (error) {
			process.send?.({
				id,
				error: error instanceof Error ? (error.stack ?? error.message) : String(error),
			} satisfies Answer)
		}
	}
	process.on('message', (call) => void answer(call as Call))
	process.on('disconnect', () => process.exit(0))
}
