/**
 * The main thread's side of one run: handles the thread's requests, and ends the run.
 *
 * A run ends exactly once. After that, and after the first request to end it, messages of its thread no longer reach the
 * host. It is ended in steps: first by a message; if the thread does not respond within the grace time, the thread is
 * terminated; if that fails too, the run is abandoned.
 */
import { Fault, messageOf, toWire } from '../errors.ts'
import type { WireError } from '../errors.ts'
import { addUsage, usageOf } from '../protocol.ts'
import type {
	Calls,
	Method,
	NewEvent,
	RunOrder,
	RunOutcome,
	SentRequest,
	ToMain,
	ToWorker,
	Usage,
} from '../protocol.ts'
import { TIMER_LIMIT_MS } from '../util/timer-limit.ts'
import { checkCall, checkEvent, checkOutcome, spentIn } from './check-message.ts'
import type { AssignedRun, Assignment } from './run-thread.ts'

/** The executor's side of a run: handlers for the thread's calls, and for messages that need no answer. */
export interface RunHost extends Answers {
	event(event: NewEvent): void
	/** A piece of the unfinished answer. */
	stream(content: string): void
	/** A request that was sent to a provider. */
	sent(request: SentRequest): void
}

type Answers = { [M in Method]: (params: Calls[M]['params']) => Promise<Calls[M]['result']> }

export interface RunHandle {
	readonly run_id: string
	/**
	 * Rejects if the run did not fail but cannot continue here, so that it may be resumed from its journal: with the error of
	 * the host, or with a Fault `thread_lost` (its thread died, or sent an invalid message), `unavailable` (no thread starts) or
	 * `queue_full`.
	 */
	readonly outcome: Promise<RunOutcome>
	/** Ends the run with the outcome `stopped`. Settles once it is over: the host is not called after that. */
	abort(reason: string): Promise<void>
	/** Stops the clock of its wall time until the returned function is called, while a tool call waits for a person. */
	hold(): () => void
}

export type Verdict = RunOutcome | { rejects: unknown }

export interface ActiveRunOptions {
	order: RunOrder
	host: RunHost
	graceMs: number
	/** Called once, when the run is over. */
	over: () => void
}

/** The longest wait for a thread to accept the run. Even on a busy machine, threads start in a tenth of this. */
const TAKE_LIMIT_MS = 30_000

export class ActiveRun implements RunHandle, AssignedRun {
	readonly run_id: string
	readonly #options: ActiveRunOptions
	readonly #outcome = Promise.withResolvers<RunOutcome>()
	readonly outcome = this.#outcome.promise
	/** A thread has reported that it has the run. */
	isTaken = false
	readonly #usage: Usage
	#assignment: Assignment | undefined
	#verdict: Verdict | undefined
	#timer: NodeJS.Timeout | undefined
	/** When its wall time ends, by the clock of `performance.now`. */
	#deadline = 0
	#isOver = false

	constructor(options: ActiveRunOptions) {
		this.#options = options
		this.run_id = options.order.run_id
		this.#usage = usageOf(options.order.journal)
		// A caller that only aborts may ignore the outcome.
		this.#outcome.promise.catch(() => {})
	}

	/** Sends the run to a thread, unless it is over already. `assign` reserves its place there. */
	start(assign: () => Assignment): void {
		if (this.#isOver) return
		this.#assignment = assign()
		this.#after(TAKE_LIMIT_MS, () =>
			this.end({ rejects: new Fault('thread_lost', `no thread took the run within ${TAKE_LIMIT_MS / 1000} s`) }),
		)
		try {
			this.#assignment.order(this.#options.order)
		} catch (error) {
			const message = `the run's order cannot be handed to a thread: ${messageOf(error)}`
			this.#finish({ status: 'failed', error: { code: 'internal', message }, usage: this.#usage })
		}
	}

	lost(cause: unknown): void {
		this.#finish({ rejects: cause })
	}

	async abort(reason: string): Promise<void> {
		this.end({ status: 'stopped' }, { kind: 'abort', reason })
		await this.#outcome.promise.catch(() => {}) // the caller waits for the end, whatever the outcome
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
		if (!this.#assignment) return this.#finish(verdict)
		this.#assignment.post(message)
		this.#after(this.#options.graceMs, () => {
			// If a thread accepts the run later, it reads the abort first.
			if (!this.isTaken) return this.#finish(verdict)
			this.#assignment?.terminate()
			this.#after(this.#options.graceMs, () => this.#finish(verdict))
		})
	}

	receive(message: ToMain): void {
		if (this.#isOver) return
		if (this.#verdict) this.#verdict = withSpent(this.#verdict, message)
		if (message.kind === 'outcome') this.#finish(this.#verdict ?? verdictOf(message.outcome))
		if (message.kind === 'hello') this.isTaken = true
		if (!this.#verdict) this.#handle(message)
	}

	#handle(message: ToMain): void {
		try {
			switch (message.kind) {
				case 'hello':
					return this.#watch(this.#options.order.remaining_ms + this.#options.graceMs)
				case 'event':
					checkEvent(message.event)
					return this.#options.host.event(message.event)
				case 'stream':
					return this.#options.host.stream(message.content)
				case 'sent':
					return this.#options.host.sent(message.request)
				case 'call':
					checkCall(message)
					void this.#answer(message)
			}
		} catch (error) {
			this.end({ rejects: error })
		}
	}

	async #answer(call: Extract<ToMain, { kind: 'call' }>): Promise<void> {
		try {
			if (call.method === 'model') addUsage(this.#usage, call.params.answer.usage)
			const value = await ask(this.#options.host, call)
			if (!this.#isOver && !this.#verdict) this.#assignment?.post({ kind: 'reply', id: call.id, value })
		} catch (error) {
			// The failure of a tool is a reply. A thrown error is a failure of the host itself, such as a full disk.
			this.end({ rejects: error }, { kind: 'reply', id: call.id, error: toWire(error) })
		}
	}

	/** The loop itself enforces the wall time; this handles a loop or a tool call that does not end. */
	#watch(ms: number): void {
		if (this.#isOver || this.#verdict) return
		const { order } = this.#options
		this.#deadline = performance.now() + ms
		this.#after(ms, () => {
			const error: WireError = {
				code: 'limit_wall_time',
				message:
					`the run did not end within its limit of ${order.limits.wall_time_s} s of active time; ` +
					'raise config.limits.wall_time_s of the agent',
			}
			this.end({ status: 'failed', error, usage: this.#usage })
		})
	}

	#finish(end: Verdict): void {
		if (this.#isOver) return
		this.#isOver = true
		clearTimeout(this.#timer)
		this.#assignment?.release()
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

/** Adds the usage that the thread reports for a stopped run: a model's answer may have been in transit when the run was stopped. */
function withSpent(verdict: Verdict, message: ToMain): Verdict {
	if (!('status' in verdict) || verdict.status !== 'stopped') return verdict
	const spent = [...(verdict.spent ?? []), ...spentIn(message)]
	return spent.length > 0 ? { ...verdict, spent } : verdict
}

function verdictOf(outcome: RunOutcome | null): Verdict {
	try {
		return checkOutcome(outcome)
	} catch (error) {
		return { rejects: error }
	}
}

function ask<M extends Method>(host: Answers, { method, params }: { method: M; params: Calls[M]['params'] }) {
	return host[method](params)
}
