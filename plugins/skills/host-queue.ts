/** Assigns hosts to callers: the pool of processes, and the queue of waiting callers, first in, first out. */
import { Fault } from '../../core/errors.ts'
import type { Logger } from '../../core/log/log.ts'
import type { HostCommand } from './host-command.ts'
import { startHost } from './host.ts'
import type { Host } from './host.ts'

export interface HostQueueOptions {
	/** Called when the first process is started; again if that failed. */
	makeCommand(): Promise<HostCommand>
	/** Limit of processes. */
	processes: number
	/** Limit of callers that wait beyond those for whom a process is being started. */
	max_waiting: number
	orders_per_process: number
	log: Logger
}

export interface HostQueue {
	/** A host that is ready. Throws `sandbox_busy`, `sandbox_crash` if none starts, or the signal's reason. */
	take(signal?: AbortSignal): Promise<Host>
	/** Call this for each host taken, even if dead. */
	giveBack(host: Host): void
	/** Starts a process if there is none. */
	warm(): void
	/** Ends all processes; settles when they have ended. */
	close(): Promise<void>
}

const START_WITHIN_MS = 30_000

type Waiting = PromiseWithResolvers<Host>

const closing = (): Fault => new Fault('unavailable', 'the code of skills does not run while its plugin stops')

export function openHostQueue(options: HostQueueOptions): HostQueue {
	const { makeCommand, processes, max_waiting, orders_per_process, log } = options
	/** Running ones, with the number of orders that each has had. */
	const hosts = new Map<Host, number>()
	/** The one that has been idle longest is next: it has had time to prepare for another program. */
	const idle = new Set<Host>()
	const waiting = new Set<Waiting>()
	let command: Promise<HostCommand> | undefined
	/** Processes that run or are about to. */
	let size = 0
	/** Of them, those that are not ready yet. */
	let starting = 0
	let closed = false
	const beginnings = new Set<Promise<void>>()

	function grow(): void {
		if (closed || size >= processes) return
		size++
		starting++
		const begun = start()
			.catch((error: unknown) => {
				if (closed) return
				log.error({ err: error }, 'a skill host does not start')
				// No caller waits forever for a process that cannot be started.
				const one = first(waiting)
				one?.reject(
					new Fault('sandbox_crash', 'the process for the code of skills does not start; see the log for the reason'),
				)
			})
			.finally(() => {
				starting--
				beginnings.delete(begun)
			})
		beginnings.add(begun)
	}

	async function start(): Promise<void> {
		let host: Host
		try {
			host = startHost(await (command ??= makeCommand()))
		} catch (error) {
			command = undefined
			size--
			throw error
		}
		hosts.set(host, 0)
		void host.gone.then(() => left(host))
		if (closed) host.end()
		const late = setTimeout(() => host.end(), START_WITHIN_MS)
		try {
			await host.ready
		} finally {
			clearTimeout(late)
		}
		offer(host)
	}

	function left(host: Host): void {
		const orders = hosts.get(host) ?? 0
		hosts.delete(host)
		idle.delete(host)
		size--
		// A process that worked is replaced at once. One that never did may fail repeatedly: it is replaced on the next request.
		if (orders > 0 || waiting.size > starting) grow()
	}

	function offer(host: Host): void {
		if (!host.alive) return
		const one = first(waiting)
		if (one) hand(host, one)
		else idle.add(host)
	}

	function hand(host: Host, to: Waiting): void {
		hosts.set(host, (hosts.get(host) ?? 0) + 1)
		to.resolve(host)
	}

	return {
		async take(signal) {
			signal?.throwIfAborted()
			if (closed) throw closing()
			const one = Promise.withResolvers<Host>()
			const host = first(idle)
			if (host) {
				hand(host, one)
				// The next call should find one as well.
				if (idle.size === 0 && starting === 0) grow()
				return one.promise
			}
			if (waiting.size >= starting) grow()
			if (waiting.size - starting >= max_waiting) {
				throw new Fault('sandbox_busy', `${max_waiting} calls of skills wait already; try again later`)
			}
			waiting.add(one)
			const abort = (): void => {
				if (waiting.delete(one)) one.reject(signal?.reason)
			}
			signal?.addEventListener('abort', abort, { once: true })
			try {
				return await one.promise
			} finally {
				signal?.removeEventListener('abort', abort)
			}
		},
		giveBack(host) {
			if (!host.alive) return
			if ((hosts.get(host) ?? 0) >= orders_per_process) host.end()
			else offer(host)
		},
		warm() {
			if (size === 0) grow()
		},
		async close() {
			closed = true
			for (let one = first(waiting); one; one = first(waiting)) one.reject(closing())
			const all = [...hosts.keys()]
			for (const host of all) host.end()
			await Promise.all([...beginnings, ...all.map((host) => host.gone)])
			// A starting process has become ready meanwhile, and was ended.
			await Promise.all([...hosts.keys()].map((host) => host.gone))
		},
	}
}

/** Removes the oldest entry. */
function first<T>(among: Set<T>): T | undefined {
	const [one] = among
	if (one !== undefined) among.delete(one)
	return one
}
