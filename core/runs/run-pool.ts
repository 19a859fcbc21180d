/**
 * The run pool: gives each run to a worker thread and answers the thread's requests.
 *
 * Many runs share a thread, since they wait for a model most of the time. They are spread over the threads. Piscina replaces a
 * thread that dies; its runs reject with `thread_lost`, and resume elsewhere from their journals. Threads that other gateways lend
 * execute runs like those of this process. `places` decides whose run is next, before anything is read for it.
 */
import { ActiveRun } from './active-run.ts'
import type { RunHandle, RunHost } from './active-run.ts'
import { Fault, messageOf } from '../errors.ts'
import type { Logger } from '../log/log.ts'
import type { RunOrder } from '../protocol.ts'
import type { RemoteGroup, RemoteGroupEvents, ThreadGroup } from './thread-group.ts'
import { within } from '../util/deadline.ts'
import { openSemaphore } from '../util/semaphore.ts'
import type { Semaphore } from '../util/semaphore.ts'
import { TransientMap } from '../util/transient-map.ts'
import { WorkerPool } from './worker-threads.ts'

export type { RunHandle, RunHost } from './active-run.ts'

export interface RunPoolSettings {
	threads: number
	/** Runs that one thread executes at the same time. */
	runs_per_thread: number
}

export interface RunPoolOptions extends RunPoolSettings {
	/** The worker's module, whose default export accepts a WorkerTask and serves it until the thread ends. */
	worker: URL
	/** Places beyond the capacity, for agents that have few runs. Default: none. */
	reserve?: (capacity: number) => number
	/** How long a run, and then its thread, may take to end on request, in milliseconds. Default 2,000. */
	grace_ms?: number
	/** The limit of a thread's heap, at which the thread ends. Default 1,024. */
	heap_mib?: number
	log?: Pick<Logger, 'warn' | 'error'>
}

export interface RunPoolStats {
	/** Live threads of this process; 0 before the first run. */
	threads: number
	/** Threads that other gateways lend. */
	lent: LentThreads[]
	/** Places on own and lent threads, without the reserve. So `active` may be higher. */
	capacity: number
	/** Runs on threads. */
	active: number
	/** Runs that wait for a place. */
	waiting: number
	/** Threads that ended without being closed, since the start. */
	lost_threads: number
}

export interface LentThreads {
	/** The gateway that lends them: its machine and process. */
	gateway: string
	threads: number
	/** Runs on them. */
	runs: number
}

const WAITING_LIMIT = 1024
/**
 * This many waiting runs start at once, so that a thread works while this one handles further requests. Fewer start together at the
 * end of the turn of the event loop, since waking a thread costs more than sending it another run.
 */
const BURST = 8
const GRACE_MS = 2_000
/** Enough for a thousand runs with long conversations, but a thread that leaks ends before the machine is out of memory. */
export const HEAP_MIB = 1024

/** Nothing is loaded and no thread starts before the first run. */
export class RunPool implements AsyncDisposable {
	/** Agents take turns: before a run is executed, a place must be acquired for the uid of its agent, and held until the run is over. */
	readonly places: Semaphore
	readonly #options: RunPoolOptions
	readonly #graceMs: number
	readonly #runs = new TransientMap<string, ActiveRun>()
	readonly #waiting: ActiveRun[] = []
	/** The open worker pools with their runs. The current one gets new runs; the others close after their last one. */
	readonly #pools = new Map<WorkerPool, TransientMap<string, ActiveRun>>()
	readonly #remote = new Set<RemoteGroup>()
	#settings: RunPoolSettings
	#current: WorkerPool | undefined
	#lost = 0
	#closed = false
	#whenIdle: PromiseWithResolvers<void> | undefined

	constructor(options: RunPoolOptions) {
		this.#options = options
		this.#graceMs = options.grace_ms ?? GRACE_MS
		this.#settings = { threads: options.threads, runs_per_thread: options.runs_per_thread }
		this.places = openSemaphore(() => this.capacity, { reserve: () => this.#reserve })
	}

	/** Runs beyond the capacity wait, at most 1,024. Throws `conflict` if a run with that id is not over yet. */
	execute(order: RunOrder, host: RunHost): RunHandle {
		if (this.#runs.has(order.run_id)) throw new Fault('conflict', `run ${order.run_id} is already in progress`)
		const run: ActiveRun = new ActiveRun({ order, host, graceMs: this.#graceMs, over: () => this.#forget(run) })
		this.#runs.set(order.run_id, run)
		if (this.#closed) run.end({ rejects: new Fault('unavailable', 'the gateway is stopping') })
		else if (this.#waiting.length >= WAITING_LIMIT) {
			run.end({ rejects: new Fault('queue_full', `${WAITING_LIMIT} runs wait for a thread already; try again later`) })
		} else {
			this.#waiting.push(run)
			if (this.#waiting.length >= BURST) this.#startWaiting()
			else if (this.#waiting.length === 1) setImmediate(() => this.#startWaiting())
		}
		return run
	}

	/** The run with that id, if it is not over yet. */
	running(run_id: string): RunHandle | undefined {
		return this.#runs.get(run_id)
	}

	/** Runs that all threads execute at the same time, without the reserve. */
	get capacity(): number {
		let capacity = this.#settings.threads * this.#settings.runs_per_thread
		for (const remote of this.#remote) capacity += remote.capacity
		return capacity
	}

	get #reserve(): number {
		return this.#options.reserve?.(this.capacity) ?? 0
	}

	/** Runs that are not over, waiting ones included. */
	get active(): number {
		return this.#runs.size
	}

	/**
	 * Adds threads outside this process until they are closed. `open` creates their group; each thread has `places` for runs:
	 * `runs_per_thread` and a share of the reserve. Throws `unavailable` once the pool is closed.
	 */
	addRemote<Group extends RemoteGroup>(
		runs_per_thread: number,
		open: (places: number, events: RemoteGroupEvents) => Group,
	): Group {
		if (this.#closed) throw new Fault('unavailable', 'the gateway is stopping')
		const changed = (): void => {
			this.#startWaiting()
			this.places.update()
		}
		const group: Group = open(this.#placesOf(runs_per_thread), {
			onFree: () => this.#startWaiting(),
			onSize: changed,
			onLost: (reason) => {
				this.#lost++
				this.#options.log?.warn(`a thread of the gateway ${group.name} was lost: ${reason}`)
			},
			onClosed: () => this.#remote.delete(group),
		})
		this.#remote.add(group)
		changed()
		return group
	}

	/** New runs are sent to new threads; the old threads close after their runs. */
	resize({ threads, runs_per_thread }: RunPoolSettings): void {
		if (threads === this.#settings.threads && runs_per_thread === this.#settings.runs_per_thread) return
		this.#settings = { threads, runs_per_thread }
		this.#retire(this.#current)
		this.#startWaiting()
		this.places.update()
	}

	/** Settles once no runs remain and all places are free (the end of a run is written after it), or after `timeoutMs`. */
	async idle(timeoutMs: number): Promise<void> {
		if (this.#runs.size > 0) this.#whenIdle ??= Promise.withResolvers()
		await within(timeoutMs, 'the runs', Promise.all([this.#whenIdle?.promise, this.places.idle()])).catch(() => {})
	}

	stats(): RunPoolStats {
		let threads = 0
		for (const pool of this.#pools.keys()) threads += pool.threads
		const ordered = this.#waiting.length
		return {
			threads,
			lent: [...this.#remote].map((one) => ({ gateway: one.name, threads: one.threads, runs: one.load })),
			capacity: this.capacity,
			active: this.active - ordered,
			waiting: ordered + this.places.waiting(),
			lost_threads: this.#lost,
		}
	}

	/** Ends all threads at once. Runs that are not over reject with `thread_lost`, later ones with `unavailable`. */
	async [Symbol.asyncDispose](): Promise<void> {
		this.#closed = true
		const stops = new Fault(
			'thread_lost',
			'the gateway is stopping; the run continues from its journal after the next start',
		)
		for (const run of this.#runs.values()) run.end({ rejects: stops })
		for (const remote of this.#remote) remote.end('the gateway that borrows them is stopping')
		const closed = Promise.all([...this.#pools.keys()].map((pool) => pool.close()))
		await within(this.#graceMs, 'its threads', closed).catch(() => {})
	}

	#startWaiting(): void {
		if (this.#waiting.length === 0 || this.#closed) return
		const pool = this.#openedPool()
		if (!pool) return
		while (this.#waiting.length > 0) {
			let group: ThreadGroup = pool
			for (const remote of this.#remote) if (remote.least < group.least) group = remote
			if (group.least === Infinity) return
			const run = this.#waiting.shift() as ActiveRun
			if (group === pool) this.#pools.get(pool)?.set(run.run_id, run)
			run.start(() => group.assign(run))
		}
	}

	/** Undefined if no thread can be started. Then all waiting runs are rejected; throwing here would reach no one who could act on it. */
	#openedPool(): WorkerPool | undefined {
		try {
			return (this.#current ??= this.#openPool())
		} catch (error) {
			const message = `no worker thread can be started: ${messageOf(error)}`
			this.#options.log?.error(message)
			const rejects = new Fault('unavailable', message, { cause: error })
			for (const run of this.#waiting.splice(0)) run.end({ rejects })
			return undefined
		}
	}

	/** Places of each thread, with a reserve that depends on its own places only, so that it stays the same when threads are added. */
	#placesOf(runs_per_thread: number): number {
		return runs_per_thread + (this.#options.reserve?.(runs_per_thread) ?? 0)
	}

	#openPool(): WorkerPool {
		const { worker, log, heap_mib = HEAP_MIB } = this.#options
		const { threads, runs_per_thread } = this.#settings
		const pool: WorkerPool = new WorkerPool({
			worker,
			threads,
			runs_per_thread: this.#placesOf(runs_per_thread),
			heap_mib,
			onFree: () => this.#startWaiting(),
			onLost: () => {
				this.#lost++
				log?.warn('a worker thread was lost; another takes its place')
			},
			onBroken: (fault) => {
				log?.error(fault.message)
				const runs = this.#pools.get(pool)?.values() ?? []
				this.#retire(pool)
				for (const run of runs) if (!run.isTaken) run.end({ rejects: fault })
			},
		})
		this.#pools.set(pool, new TransientMap())
		return pool
	}

	/** The next run opens another pool. */
	#retire(pool: WorkerPool | undefined): void {
		if (!pool) return
		if (this.#current === pool) this.#current = undefined
		this.#closeWhenEmpty(pool)
	}

	#forget(run: ActiveRun): void {
		this.#runs.delete(run.run_id)
		const place = this.#waiting.indexOf(run)
		if (place >= 0) this.#waiting.splice(place, 1)
		for (const [pool, runs] of this.#pools) if (runs.delete(run.run_id)) this.#closeWhenEmpty(pool)
		if (this.#runs.size > 0) return
		this.#whenIdle?.resolve()
		this.#whenIdle = undefined
	}

	#closeWhenEmpty(pool: WorkerPool): void {
		if (pool === this.#current || this.#pools.get(pool)?.size !== 0) return
		this.#pools.delete(pool)
		// Not awaited: a thread may not end.
		pool.close().catch(() => {})
	}
}
