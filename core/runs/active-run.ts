/**
 * The main thread's side of one run: its port, the thread's requests, and how it is ended.
 *
 * A run ends exactly once. From then on, and after the first request to end it, nothing that its thread still sends
 * reaches the host. It is ended in steps: a message; if the thread does not respond within the grace time, the
 * thread is terminated; if even that does not help, the run is abandoned.
 */
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import { Fault, toWire } from '../errors.ts'
import type { WireError } from '../errors.ts'
import { addUsage } from '../protocol.ts'
import type {
	Calls,
	NewEvent,
	RunOrder,
	RunOutcome,
	ToMain,
	ToolReply,
	ToWorker,
	Usage,
	WorkerTask,
} from '../protocol.ts'

/** What a run may request from its executor. */
export interface RunHost {
	event(event: NewEvent): void
	/** A piece of the unfinished answer. */
	stream(content: string): void
	/** Settles once the answer is durable. */
	model(params: Calls['model']['params']): Promise<Calls['model']['result']>
	/** Settles once the remark is durable. */
	remark(params: Calls['remark']['params']): Promise<null>
	/** Several calls may be in progress. */
	tool(params: Calls['tool']['params']): Promise<ToolReply>
	blob(params: Calls['blob']['params']): Promise<Calls['blob']['result']>
}

export interface RunHandle {
	readonly run_id: string
	/**
	 * Rejects if the run did not fail but cannot continue here, so that it may be retried from its journal: with what
	 * the host threw, or with a Fault `thread_lost` (its thread died), `unavailable` (no thread starts) or `queue_full`.
	 */
	readonly outcome: Promise<RunOutcome>
	/** Ends the run with the outcome `stopped`. Settles once it is over: the host is not called after that. */
	abort(reason: string): Promise<void>
	/** Stops the clock of its wall time, until the returned function is called: a call of a tool waits for a person. */
	hold(): () => void
}

/** What a run needs from the threads. */
export interface Threads {
	/** Settles with the run's last messages, or with how the run ends if no thread executed it. Never rejects. */
	post(task: WorkerTask): Promise<ToMain[] | Verdict>
	terminate(thread: number): void
}

/** How a run ends that does not end by itself. */
export type Verdict = RunOutcome | { rejects: unknown }

export interface ActiveRunOptions {
	order: RunOrder
	host: RunHost
	graceMs: number
	/** Called once, when the run is over. */
	over: () => void
}

/** Longest wait for a thread to take the run. Threads start in a tenth of this even on a busy machine. */
const TAKE_LIMIT_MS = 30_000
/** The longest delay of a timer; about 24 days. */
const TIMER_LIMIT_MS = 2 ** 31 - 1

export class ActiveRun implements RunHandle {
	readonly run_id: string
	readonly #options: ActiveRunOptions
	readonly #outcome = Promise.withResolvers<RunOutcome>()
	readonly #usage: Usage = { input_tokens: 0, output_tokens: 0 }
	#threads: Threads | undefined
	#port: MessagePort | undefined
	#thread: number | undefined
	#verdict: Verdict | undefined
	#timer: NodeJS.Timeout | undefined
	/** When its wall time ends, by the clock of `performance.now`. */
	#deadline = 0
	#isOver = false

	constructor(options: ActiveRunOptions) {
		this.#options = options
		this.run_id = options.order.run_id
		for (const step of options.order.journal) if (step.kind === 'model') addUsage(this.#usage, step.answer.usage)
		// A caller that only aborts may ignore the outcome.
		this.#outcome.promise.catch(() => {})
	}

	get outcome(): Promise<RunOutcome> {
		return this.#outcome.promise
	}

	/** Called when a thread reports that it has the run. */
	get isTaken(): boolean {
		return this.#thread !== undefined
	}

	/** Hands the run to a thread, unless it is over already. */
	start(threads: Threads): void {
		if (this.#isOver) return
		this.#threads = threads
		const { port1, port2 } = new MessageChannel()
		this.#port = port1
		port1.on('message', (messages: ToMain[]) => this.#receive(messages))
		this.#after(TAKE_LIMIT_MS, () =>
			this.end({ rejects: new Fault('thread_lost', `no thread took the run within ${TAKE_LIMIT_MS / 1000} s`) }),
		)
		void threads.post({ order: this.#options.order, port: port2 }).then((end) => {
			if (!Array.isArray(end)) return this.#finish(end)
			this.#receiveLeft()
			this.#receive(end)
			this.#finish({ rejects: new Error('the worker ended the run without an outcome') })
		})
	}

	async abort(reason: string): Promise<void> {
		this.end({ status: 'stopped' }, { kind: 'abort', reason })
		await this.#outcome.promise.catch(() => {}) // a caller that aborts waits for the end, whatever the outcome
	}

	hold(): () => void {
		const left = this.#deadline - performance.now()
		if (!this.#isOver && !this.#verdict) clearTimeout(this.#timer)
		return () => this.#watch(left)
	}

	/** The first verdict counts. */
	end(verdict: Verdict, message: ToWorker = { kind: 'abort', reason: 'the gateway ends the run' }): void {
		if (this.#isOver || this.#verdict) return
		this.#verdict = verdict
		if (!this.#port) return this.#finish(verdict)
		this.#port.postMessage(message)
		this.#after(this.#options.graceMs, () => {
			// If a thread still takes the run, it reads the abort before anything else.
			if (this.#thread === undefined) return this.#finish(verdict)
			this.#threads?.terminate(this.#thread)
			this.#after(this.#options.graceMs, () => this.#finish(verdict))
		})
	}

	#receive(messages: ToMain[]): void {
		for (const message of messages) {
			if (this.#isOver) return
			if (message.kind === 'outcome') this.#finish(message.outcome)
			if (message.kind === 'hello') this.#thread = message.thread
			if (!this.#verdict) this.#obey(message)
		}
	}

	#obey(message: ToMain): void {
		try {
			switch (message.kind) {
				case 'hello':
					return this.#watch(this.#options.order.remaining_ms + this.#options.graceMs)
				case 'event':
					return this.#options.host.event(message.event)
				case 'stream':
					return this.#options.host.stream(message.content)
				case 'call':
					void this.#answer(message)
			}
		} catch (error) {
			this.end({ rejects: error })
		}
	}

	/** What was posted before the end may arrive after it, since it came by another port. */
	#receiveLeft(): void {
		while (!this.#isOver && this.#port) {
			const left = receiveMessageOnPort(this.#port)
			if (!left) return
			this.#receive(left.message as ToMain[])
		}
	}

	async #answer(call: Extract<ToMain, { kind: 'call' }>): Promise<void> {
		try {
			if (call.method === 'model') addUsage(this.#usage, call.params.answer.usage)
			const value = await this.#ask(call)
			if (!this.#isOver && !this.#verdict) this.#port?.postMessage({ kind: 'reply', id: call.id, value })
		} catch (error) {
			// A tool that fails is a reply. What is thrown is a failure of the host itself, such as a full disk.
			this.end({ rejects: error }, { kind: 'reply', id: call.id, error: toWire(error) })
		}
	}

	#ask(call: Extract<ToMain, { kind: 'call' }>): Promise<unknown> {
		const { host } = this.#options
		switch (call.method) {
			case 'model':
				return host.model(call.params)
			case 'remark':
				return host.remark(call.params)
			case 'tool':
				return host.tool(call.params)
			case 'blob':
				return host.blob(call.params)
		}
	}

	/** The loop enforces its wall time itself; this is for a loop, or a tool call, that does not end. */
	#watch(ms: number): void {
		if (this.#isOver || this.#verdict) return
		const { order } = this.#options
		this.#deadline = performance.now() + ms
		this.#after(ms, () => {
			const error: WireError = {
				code: 'limit_wall_time',
				message:
					`the run did not come to an end within its limit of ${order.limits.wall_time_s} s of active time; ` +
					'raise config.limits.wall_time_s of the agent',
			}
			this.end({ status: 'failed', error, usage: this.#usage })
		})
	}

	#finish(end: Verdict): void {
		if (this.#isOver) return
		this.#isOver = true
		clearTimeout(this.#timer)
		this.#port?.close()
		const verdict = this.#verdict ?? end
		this.#options.over()
		if ('rejects' in verdict) this.#outcome.reject(verdict.rejects)
		else this.#outcome.resolve(verdict)
	}

	#after(ms: number, act: () => void): void {
		clearTimeout(this.#timer)
		this.#timer = setTimeout(act, Math.min(Math.max(0, ms), TIMER_LIMIT_MS))
	}
}
