/** The main thread's end of a worker thread, of this process or of another gateway: one transport for all runs of the thread. */
import type { FromThread, RunOrder, ToMain, ToolSet, ToolSpec, ToThread, ToWorker } from '../protocol.ts'
import { KeptHistories } from './kept-histories.ts'
import { TransientMap } from '../util/transient-map.ts'

/** A run on a thread. */
export interface AssignedRun {
	receive(message: ToMain): void
	/** The thread ended. */
	lost(cause: unknown): void
}

/** The place of a run on a thread. */
export interface Assignment {
	/** Throws if it cannot be cloned. */
	order(order: RunOrder): void
	/** Throws if it cannot be cloned. */
	post(message: ToWorker): void
	/** Ends the thread, and with it all of its runs. */
	terminate(): void
	/** The run is over: further messages about it are dropped. */
	release(): void
}

/** Sends messages to a thread. */
export interface ThreadTransport {
	/** Throws if the message cannot be cloned. */
	post(message: ToThread): void
	/** Ends the thread. `id`: its `worker_threads.threadId` in its own process. */
	terminate(id: number): void
	/** Nothing is received after that. Returns messages that have arrived and were not received yet. */
	close(): FromThread[]
}

/** Limit of the lists of tools that a thread keeps. */
const TOOL_SETS = 32

export class RunThread {
	/** It is being terminated, which takes a while. A new run would be lost with it. */
	isEnding = false
	/** `worker_threads.threadId`, once it has accepted a run. */
	#id: number | undefined
	readonly #transport: ThreadTransport
	readonly #runs = new TransientMap<number, AssignedRun>()
	readonly #tools = new ToolSets()
	readonly #histories = new KeptHistories()
	#lastRun = 0

	/** Received messages must be passed to `receive`. */
	constructor(transport: ThreadTransport) {
		this.#transport = transport
	}

	/** Runs on it. */
	get load(): number {
		return this.#runs.size
	}

	assign(run: AssignedRun): Assignment {
		const number = ++this.#lastRun
		this.#runs.set(number, run)
		const post = (message: ToThread['message']): void => this.#transport.post({ run: number, message })
		return {
			order: ({ tools, history, ...order }) =>
				this.#tools.send(tools, (set) =>
					this.#histories.send(history, (sent) => post({ kind: 'order', order, tools: set, history: sent })),
				),
			post,
			terminate: () => {
				if (this.#id === undefined) return
				this.isEnding = true
				this.#transport.terminate(this.#id)
			},
			release: () => void this.#runs.delete(number),
		}
	}

	receive(messages: FromThread): void {
		for (const { run, message } of messages) {
			if (message.kind === 'hello') this.#id = message.thread
			this.#runs.get(run)?.receive(message)
		}
	}

	/** To be called when the thread has ended. Earlier messages are still received. */
	close(cause: unknown): void {
		for (const messages of this.#transport.close()) this.receive(messages)
		for (const run of this.#runs.values()) run.lost(cause)
	}
}

/** The lists of tools that a thread has. Lists are equal if their tools are the same objects. */
class ToolSets {
	/** By the numbers of the tools; oldest use first. */
	readonly #sent = new Map<string, number>()
	#lastId = 0

	/** `post` is called once, and may throw. */
	send(tools: ToolSpec[], post: (set: ToolSet) => void): void {
		const key = tools.map(numberOf).join()
		const known = this.#sent.get(key)
		const id = known ?? ++this.#lastId
		if (known !== undefined) post({ id })
		else {
			const [oldest] = this.#sent.size < TOOL_SETS ? [] : this.#sent
			post({ id, list: tools, ...(oldest && { forget: oldest[1] }) })
			if (oldest) this.#sent.delete(oldest[0])
		}
		this.#sent.delete(key)
		this.#sent.set(key, id)
	}
}

const numbers = new WeakMap<ToolSpec, number>()
let lastNumber = 0

function numberOf(tool: ToolSpec): number {
	const number = numbers.get(tool) ?? ++lastNumber
	numbers.set(tool, number)
	return number
}
