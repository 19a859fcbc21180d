/**
 * Assigns hosts to callers: the pool of processes, and the callers that wait. Owners, which are agents, take turns.
 *
 * `processes` programs compute at the same time. A program that only waits does not count, nor does one of an owner that has no
 * other that computes. `waiting_processes` is the reserve for these, which no owner gets all of (`Shares.may`). An owner whose
 * program ended a moment ago keeps its place for a second: one that fills all others would slow its next program down.
 */
import { addAbortListener } from 'node:events'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { FairQueue } from '../../core/util/fair-queue.ts'
import { reserveOf, Shares } from '../../core/util/shares.ts'
import { Fault } from '../../core/errors.ts'
import type { Logger } from '../../core/log/log.ts'
import { once } from '../shared/once.ts'
import { tryLater } from '../shared/try-later.ts'
import type { HostCommand } from './host-command.ts'
import { startHost } from './host.ts'
import type { Host } from './host.ts'

export interface HostQueueOptions {
	/** Called when the first process is started; again if that failed. */
	makeCommand(): Promise<HostCommand>
	/** Programs that compute at the same time, and processes that stay when there is nothing to do. */
	processes: number
	/** Further processes. */
	waiting_processes: number
	/** Limit of one owner's callers that wait beyond those for whom a process is being started; all have a quarter more. */
	max_waiting: number
	orders_per_process: number
	log: Logger
}

const START_WITHIN_MS = 30_000
const KEPT_MS = 1000

interface WaitingCall extends PromiseWithResolvers<Host> {
	owner: string
}

/** A caller that has a host. */
interface HostUser {
	owner: string
	computes: boolean
}

const closing = (): Fault => new Fault('unavailable', 'the code of skills does not run while its plugin stops')

export function openHostQueue(options: HostQueueOptions) {
	const { processes, waiting_processes, max_waiting, orders_per_process, log } = options
	const makeCommand = once(options.makeCommand)
	/** Running ones, with the number of orders that each has had. */
	const hosts = new Map<Host, number>()
	/** The one that has been idle longest is next: it has had time to prepare for another program. */
	const idle = new Set<Host>()
	const waiting = new FairQueue<WaitingCall>()
	const places = new Shares(
		() => max_waiting + starting.size,
		() => reserveOf(max_waiting),
	)
	const holders = new Map<Host, HostUser>()
	const taken = new Shares(
		() => processes,
		() => waiting_processes,
	)
	const computing = new Shares(
		() => processes,
		() => 0,
	)
	/** When the latest program of each owner ended. */
	const recent = new BoundedMap<string, number>(processes)
	const mayCompute = (owner: string): boolean => {
		if (computing.heldBy(owner) === 0) return true
		let places = computing.used
		for (const [other, ended] of recent) {
			if (other === owner || computing.heldBy(other) > 0) continue
			if (performance.now() - ended <= KEPT_MS) places++
		}
		return places < processes
	}
	const may = (owner: string): boolean => taken.may(owner) && mayCompute(owner)
	/** While callers wait for places that are kept for others. */
	let retry: NodeJS.Timeout | undefined
	/** Processes that run or are about to. */
	let size = 0
	/** Of them, those that are not ready yet. */
	const starting = new Set<Promise<void>>()
	let closed = false

	function grow(): void {
		if (closed || size >= processes + waiting_processes) return
		size++
		const begun = start()
			.catch((error: unknown) => {
				if (closed) return
				log.error({ err: error }, 'a skill host does not start')
				// No caller waits forever for a process that cannot be started.
				nextWaiting()?.reject(
					new Fault('sandbox_crash', 'the process for the code of skills does not start; see the log for the reason'),
				)
			})
			.finally(() => starting.delete(begun))
		starting.add(begun)
	}

	async function start(): Promise<void> {
		let host: Host
		try {
			host = startHost(await makeCommand())
		} catch (error) {
			size--
			throw error
		}
		hosts.set(host, 0)
		void host.gone.then(() => left(host))
		if (closed) host.end()
		using _ = setTimeout(() => host.end(), START_WITHIN_MS)
		await host.ready
		offer(host)
	}

	function left(host: Host): void {
		const orders = hosts.get(host) ?? 0
		hosts.delete(host)
		idle.delete(host)
		size--
		// A process that worked is replaced at once. One that never did may fail repeatedly: it is replaced on the next request.
		if (orders > 0 && size < processes) grow()
		else growFor()
	}

	function offer(host: Host): void {
		if (!host.alive) return
		idle.add(host)
		handOut()
		// One that is idle is ready for an agent that calls now and then, while another's calls use the others.
		if (idle.has(host) && idle.size > processes) {
			idle.delete(host)
			host.end()
		}
	}

	/** Gives idle hosts to those whose turn it is, and starts further ones if they are too few. */
	function handOut(): void {
		for (const host of idle) {
			const one = nextWaiting(may)
			if (!one) {
				if (waiting.size > 0) retryLater()
				return
			}
			idle.delete(host)
			hosts.set(host, (hosts.get(host) ?? 0) + 1)
			holders.set(host, { owner: one.owner, computes: true })
			taken.add(one.owner)
			computing.add(one.owner)
			one.resolve(host)
		}
		growFor()
	}

	function retryLater(): void {
		retry ??= setTimeout(() => {
			retry = undefined
			handOut()
		}, KEPT_MS).unref()
	}

	/**
	 * `newcomer`: an owner who is about to wait. Beyond `processes` one after the other, since who may take them is decided when
	 * they are ready.
	 */
	function growFor(newcomer?: string): void {
		const wanted = waiting.size + (newcomer === undefined ? 0 : 1)
		if (wanted <= starting.size) return
		const isAllowed = (): boolean => waiting.has(may) || (newcomer !== undefined && may(newcomer))
		if (size < processes || (starting.size === 0 && isAllowed())) grow()
	}

	function nextWaiting(which?: (owner: string) => boolean): WaitingCall | undefined {
		const one = waiting.next(which)
		if (one) places.remove(one.owner)
		return one
	}

	/** It counts no longer, whether it is dead or not. */
	function leave(host: Host): void {
		const holder = holders.get(host)
		if (!holder) return
		holders.delete(host)
		taken.remove(holder.owner)
		recent.set(holder.owner, performance.now())
		if (holder.computes) computing.remove(holder.owner)
	}

	return {
		/** A host that is ready. Throws `sandbox_busy`, `sandbox_crash` if none starts, or the signal's reason. */
		async take(owner: string, signal?: AbortSignal): Promise<Host> {
			signal?.throwIfAborted()
			if (closed) throw closing()
			const one = { ...Promise.withResolvers<Host>(), owner }
			const isReady = idle.size > 0 && may(owner)
			if (!isReady) {
				growFor(owner)
				if (!places.may(owner)) {
					const message = `${places.heldBy(owner)} calls of this agent's skills wait already (${places.used} in all); try again later, or raise skills.max_waiting or skills.processes`
					throw tryLater('sandbox_busy', message, 5)
				}
			}
			waiting.add(owner, one)
			places.add(owner)
			handOut()
			// The next call should find one as well.
			if (isReady && idle.size === 0 && starting.size === 0 && size < processes) grow()
			const abort = (): void => {
				if (!waiting.delete(owner, one)) return
				places.remove(owner)
				one.reject(signal?.reason)
			}
			using _ = signal && addAbortListener(signal, abort)
			return await one.promise
		},
		/** The program of a host that was taken only waits from now on, or computes again. */
		setWaits(host: Host, only: boolean): void {
			const holder = holders.get(host)
			if (!holder || holder.computes !== only) return
			holder.computes = !only
			if (!only) return computing.add(holder.owner)
			computing.remove(holder.owner)
			handOut()
		},
		/** Call this for each host taken, even if dead. */
		release(host: Host): void {
			leave(host)
			if (!host.alive) return handOut()
			if ((hosts.get(host) ?? 0) >= orders_per_process) host.end()
			else offer(host)
		},
		/** Starts a process if there is none. */
		warm(): void {
			if (size === 0) grow()
		},
		/** Ends all processes; settles when they have ended. */
		async close(): Promise<void> {
			closed = true
			clearTimeout(retry)
			for (let one = nextWaiting(); one; one = nextWaiting()) one.reject(closing())
			const all = [...hosts.keys()]
			for (const host of all) host.end()
			await Promise.all([...starting, ...all.map((host) => host.gone)])
			// A starting process has become ready meanwhile, and was ended.
			await Promise.all([...hosts.keys()].map((host) => host.gone))
		},
	}
}
